/** The build takes these files in as texts, fonts in base64, by the attribute of their imports. */
declare module "*.css" {
  const text: string;
  export default text;
}
declare module "*.browser.js" {
  const text: string;
  export default text;
}
declare module "*.module.js" {
  const text: string;
  export default text;
}
declare module "*.woff2" {
  const base64: string;
  export default base64;
}
