// Starts petql in a clone. JavaScript, since an old Node.js cannot read the file that would tell it its version.
const PARENT_CHECK_MS = 250;
const NOT_READ = 'ERR_UNKNOWN_FILE_EXTENSION';
const ADVICE =
  'npm ci installs one that needs glibc, unless scripts or dev packages are left out: npm ci --include=dev --ignore-scripts=false. ' +
  'On Alpine, install Node.js itself.';

import('./main.ts').catch((error) => {
  if (error.code !== NOT_READ) throw error;
  process.stderr.write(`petql needs Node.js 24.12 or later, and this is ${process.versions.node}. ${ADVICE}\n`);
  process.exit(1);
});

// npm passes a signal on to its shell, and some shells end by it alone.
const { ppid } = process;
const check = setInterval(() => {
  if (process.ppid === ppid) return;
  clearInterval(check);
  process.kill(process.pid, 'SIGTERM');
}, PARENT_CHECK_MS);
check.unref();
