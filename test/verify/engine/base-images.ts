import { execFile } from 'node:child_process';
import { copyFile, mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { parse } from 'yaml';

const run = promisify(execFile);

interface BaseImageOptions {
  /** The clone with the Dockerfile. */
  readonly root: string;
  /** Where the images are made. */
  readonly folder: string;
  readonly docker: (...args: readonly string[]) => Promise<string>;
  readonly print: (text: string) => void;
}

/** One Debian, with Node.js for the one image and Redis for the other, and with this machine's registry and certificates. */
const DOCKERFILE = `
FROM scratch AS root
ADD root.tar /
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

FROM root AS redis
VOLUME /data
WORKDIR /data
USER redis
# As the official image, without protected mode.
ENTRYPOINT ["sh", "-c", "exec \\"$@\\" --protected-mode no", "sh"]
CMD ["redis-server"]

FROM root AS node
COPY node /usr/local/bin/node
COPY npm /usr/local/lib/node_modules/npm
COPY ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY npmrc /usr/local/etc/npmrc
RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm
CMD ["node"]
`;

/** What no program in the images reads. */
const LEFT_OUT = ['/usr/share/man/*', '/usr/share/doc/*'];

/** Makes the images that the Dockerfile and compose.yaml begin with, under their names, out of Debian's packages and the pinned Node.js. */
export async function buildBaseImages({ root, folder, docker, print }: BaseImageOptions): Promise<void> {
  const base = join(folder, 'base');
  await mkdir(base);
  // Some 60 MB, which take a minute.
  const cached = fileURLToPath(new URL('../../../node_modules/.cache/petql-engine/root.tar', import.meta.url));
  if (!existsSync(cached)) await bootstrap(cached);
  await copyFile(cached, join(base, 'root.tar'));

  await copyFile(process.execPath, join(base, 'node'));
  const { stdout: archive } = await run('npm', ['pack', '--silent', 'npm@11'], { cwd: base });
  await run('tar', ['-xzf', archive.trim()], { cwd: base });
  await rename(join(base, 'package'), join(base, 'npm'));
  await copyFile('/etc/ssl/certs/ca-certificates.crt', join(base, 'ca-certificates.crt'));
  const { stdout: registry } = await run('npm', ['config', 'get', 'registry']);
  await writeFile(join(base, 'npmrc'), `cafile=/etc/ssl/certs/ca-certificates.crt\nregistry=${registry}`);
  await writeFile(join(base, 'Dockerfile'), DOCKERFILE);

  const [node = ''] = /(?<=^FROM )\S+/m.exec(await readFile(join(root, 'Dockerfile'), 'utf8')) ?? [];
  const { redis } = parse(await readFile(join(root, 'test/container/compose.yaml'), 'utf8')).services;
  await docker('build', '-q', '--target', 'redis', '-t', redis.image, base);
  await docker('build', '-q', '--target', 'node', '-t', node, base);
  print(`base images: ${node} with ${process.version}, ${redis.image}`);
}

/** Makes an archive of a small Debian, the release of this machine. */
async function bootstrap(archive: string): Promise<void> {
  await mkdir(join(archive, '..'), { recursive: true });
  const [, release = 'stable'] = /^VERSION_CODENAME=(\w+)$/m.exec(await readFile('/etc/os-release', 'utf8')) ?? [];
  const clean = 'rm -rf "$1"/var/lib/apt/lists/* "$1"/var/cache/apt/*';
  const hook = `chroot "$1" useradd -m -u 1000 node; mkdir "$1"/data; chroot "$1" chown redis:redis /data; ${clean}`;
  const options = [
    '--quiet',
    '--variant=minbase',
    '--include=ca-certificates,redis-server',
    `--customize-hook=${hook}`,
  ];
  const leftOut = LEFT_OUT.map((path) => `--dpkgopt=path-exclude=${path}`);
  await run('mmdebstrap', [...options, ...leftOut, release, `${archive}.part.tar`], { maxBuffer: 100_000_000 });
  await rename(`${archive}.part.tar`, archive);
}
