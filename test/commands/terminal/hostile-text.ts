/** A title for the window, colours in two encodings, and overrides of the writing direction. */
export const HOSTILE = "\u001b]0;TITLE\u0007\u001b[31m\u009b32m\u202eX\u2066\u007f";

/** Characters that steer a terminal; tabs and line ends do not. */
// oxlint-disable-next-line no-control-regex -- control characters are what this is about
export const STEERS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/;
