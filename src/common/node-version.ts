/** The first import, since older versions of Node cannot run the others. Bun says that it is Node, and has another undici. */
const { node, bun } = process.versions;
const [major = 0, minor = 0] = node.split('.').map(Number);
if (bun !== undefined || major < 24 || (major === 24 && minor < 12)) {
  throw new Error(`petql needs Node.js 24.12 or later, and this is ${bun === undefined ? node : `Bun ${bun}`}.`);
}
