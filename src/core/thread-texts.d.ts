/** The build takes the code of threads in as text, with the packages it imports. */
declare module "*.thread.ts?text" {
  const code: string;
  export default code;
}
