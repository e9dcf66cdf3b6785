/** The first import, since older versions of Node cannot run the others. */
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < 24 || (major === 24 && minor < 12)) {
  throw new Error(`petql needs Node.js 24.12 or later, and this is ${process.versions.node}.`);
}
