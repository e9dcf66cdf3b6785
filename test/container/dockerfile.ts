import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, rename } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';

/** What an image would hold and run. */
export interface Image {
  /** The folder that stands for the image's root. */
  readonly root: string;
  workdir: string;
  readonly env: Record<string, string>;
  user: string | undefined;
  entrypoint: string[];
  healthcheck: string[];
}

/**
 * Carries out a Dockerfile without a container engine: each stage is a folder, COPY copies, RUN runs there. It throws at an
 * instruction that this project does not use, rather than skip a step.
 */
export async function buildImage(context: string): Promise<Image> {
  const stages = new Map<string, Image>();
  let image = await emptyImage();
  for (const [instruction, argument] of instructionsOf(await readFile(join(context, 'Dockerfile'), 'utf8'))) {
    switch (instruction) {
      case 'FROM': {
        image = await emptyImage();
        const name = / AS (\S+)$/i.exec(argument)?.[1];
        if (name) stages.set(name, image);
        break;
      }
      case 'WORKDIR':
        image.workdir = argument;
        await mkdir(join(image.root, argument), { recursive: true });
        break;
      case 'COPY':
        await copy(argument, image, (stage) => (stage === undefined ? context : (stages.get(stage)?.root ?? '')));
        break;
      case 'RUN':
        await promisify(execFile)('sh', ['-c', argument], { cwd: join(image.root, image.workdir) });
        break;
      case 'ENV': {
        const [name = '', value = ''] = argument.split('=');
        image.env[name] = value;
        break;
      }
      case 'USER':
        image.user = argument;
        break;
      case 'EXPOSE':
        break;
      case 'HEALTHCHECK':
        image.healthcheck = JSON.parse(argument.slice(argument.indexOf('CMD ') + 4));
        break;
      case 'ENTRYPOINT':
        image.entrypoint = JSON.parse(argument);
        break;
      default:
        throw new Error(`expected an instruction that this test can carry out, got ${instruction}`);
    }
  }
  return image;
}

async function emptyImage(): Promise<Image> {
  const root = await mkdtemp(join(tmpdir(), 'petql-image-'));
  return { root, workdir: '/', env: {}, user: undefined, entrypoint: [], healthcheck: [] };
}

function instructionsOf(dockerfile: string): [string, string][] {
  return dockerfile
    .replaceAll(/^#.*\n/gm, '')
    .replaceAll(/\\\n\s*/g, '')
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => [line.slice(0, line.indexOf(' ')), line.slice(line.indexOf(' ') + 1).trim()]);
}

async function copy(argument: string, image: Image, rootOf: (stage: string | undefined) => string): Promise<void> {
  const words = argument.split(/\s+/);
  const stage = words[0]?.startsWith('--from=') ? words.shift()?.slice('--from='.length) : undefined;
  const target = words.pop() ?? '';
  for (const source of words) {
    // Into a folder where the target ends in a slash, else under the target's name.
    const place = target.endsWith('/') ? join(target, basename(source)) : target;
    const [from, to] = [join(rootOf(stage), source), join(image.root, image.workdir, place)];
    // Nothing else is taken from a stage.
    await (stage ? rename(from, to) : cp(from, to, { recursive: true }));
  }
}
