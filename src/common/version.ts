/** The version in package.json, which a bundle of the library does not have beside it. */
export const version = '0.3.0';
