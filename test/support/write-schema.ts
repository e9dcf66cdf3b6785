import { writeFile } from 'node:fs/promises';
import { printSchema } from 'graphql';
import { schema } from '../../src/schema/schema.ts';

/** `npm run schema`: prints the schema from the code to where it is checked in. */
await writeFile(new URL('../../schema/schema.graphql', import.meta.url), `${printSchema(schema)}\n`);
