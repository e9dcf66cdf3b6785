#!/usr/bin/env node
import { setFlagsFromString } from 'node:v8';
// First: it takes the signals of a process that only begins to start.
import './signals.ts';

try {
  await import('../common/node-version.ts');
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
