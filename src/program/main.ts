#!/usr/bin/env node
import { constants } from 'node:os';
import { setFlagsFromString } from 'node:v8';

// The first process of a container ignores signals that it does not listen for.
for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.once(signal, () => process.exit(128 + constants.signals[signal]));
}

try {
  await import('../node-version.ts');
} catch (error) {
  console.error((error as Error).message);
  process.exit(1);
}

// With a thousand API keys, V8 would move the objects of each request to the old generation, which takes a third of the time.
setFlagsFromString('--no-allocation-site-pretenuring');

// Compiling takes a third of the start. Without a writable directory for temporary files there is no cache. The import is here,
// since an older Node, which the check above rejects, has no such export.
const { enableCompileCache } = await import('node:module');
enableCompileCache();
await import('./command-line.ts');
