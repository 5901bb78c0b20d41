/** Longest message of a client, in bytes: to decode, parse and check one of 4 MB takes up to 240 ms. */
export const MAX_MESSAGE_BYTES = 768 * 1024;

export const TOO_LONG = `Invalid request: the message must not exceed ${MAX_MESSAGE_BYTES} bytes; put long texts into a file and name it`;
