/** The build takes these files in as texts, by the attribute of their imports. */
declare module "*.css" {
  const text: string;
  export default text;
}
declare module "*.browser.js" {
  const text: string;
  export default text;
}
