#!/usr/bin/env node
import { setFlagsFromString } from 'node:v8';

try {
  await import('./node-version.ts');
} catch (error) {
  console.error((error as Error).message);
  process.exit(1);
}
// With a thousand API keys, V8 would move what one request needs to the old generation, at the cost of a third of its time.
setFlagsFromString('--no-allocation-site-pretenuring');
// Compiling takes a third of the start. A system without a writable directory for temporary files starts without the cache.
const { enableCompileCache } = await import('node:module');
enableCompileCache();
await import('./command-line.ts');
