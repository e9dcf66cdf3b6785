import { writeFile } from 'node:fs/promises';

/** Modules that read files beside them, which a bundle of petql does not have. */
const MODULES = ['graphiql/page-script', 'admin/quota-reload'];

/** A part of `npm run build`: replaces each of these modules by the texts that it exports. */
for (const name of MODULES) {
  const texts: Record<string, string> = await import(`../../src/${name}.ts`);
  const lines = Object.entries(texts).map(([key, text]) => `export const ${key} = ${JSON.stringify(text)};\n`);
  await writeFile(new URL(`../../dist/${name}.js`, import.meta.url), lines.join(''));
}
