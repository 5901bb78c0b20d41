/** The build takes these files in as texts, by the attribute of their imports. */
declare module "*.sh" {
  const text: string;
  export default text;
}
declare module "*.bash" {
  const text: string;
  export default text;
}
declare module "*.zsh" {
  const text: string;
  export default text;
}
declare module "*.fish" {
  const text: string;
  export default text;
}
declare module "*.ps1" {
  const text: string;
  export default text;
}
declare module "*.sql" {
  const text: string;
  export default text;
}
