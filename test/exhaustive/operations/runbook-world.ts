// The machines of docs/operations.md as directories beside each other: commands run in the home of their machine, and absolute
// paths are below it. Owns running the commands with the real program, the virtual time, codes that people exchange by voice,
// and the end of every service. The page owns the expected results.
import { execFileSync, spawn } from 'node:child_process';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';
import { freePort } from '../../kit/programs/free-port.js';
import { writeStandIns } from './stand-ins.js';

export const machines = [
  'office',
  'anna',
  'ben',
  'carol',
  'dora',
  'server',
  'mirror',
  'new-server',
  'host',
  'cellar',
  'dns-team',
] as const;
export type Machine = (typeof machines)[number];

export interface Typed {
  readonly exitCode: number | null;
  /** stdout and stderr, as a terminal would show them. */
  readonly output: string;
}

export interface TypeOptions {
  /** Input for a passphrase, and for a new one. */
  readonly typed?: readonly string[];
}

export interface RunbookWorld extends AsyncDisposable {
  readonly dir: TempDir;
  /** @param machine that the command runs on @param text of the command, as on the page */
  type(machine: Machine, text: string, options?: TypeOptions): Promise<Typed>;
  /** The real path of an absolute path of the page on a machine. */
  path(machine: Machine, path: string): string;
  /** Advances the time while services are stopped, then starts them again. */
  sleep(ms: number): Promise<void>;
  nowMs(): number;
  /** Ends every service. */
  stopAll(): Promise<void>;
  /** Copies the stopped world to another directory. */
  copy(): Promise<RunbookWorld>;
}

const shiftedClock = pathToFileURL(join(import.meta.dirname, '../../kit/clock/shifted-clock.js')).href;

interface Ports {
  readonly policy: number;
  readonly mirror: number;
}

export async function runbookWorld(): Promise<RunbookWorld> {
  const dir = tempDir();
  for (const name of [...machines, 'shared']) fs.mkdirSync(dir.join(name));
  for (const name of machines) {
    for (const place of ['home', 'etc/writ', 'srv/writ', 'run/writ', 'var/lib']) {
      fs.mkdirSync(dir.join(name, place), { recursive: true });
    }
  }
  fs.mkdirSync(dir.join('shared', 'media', 'usb'), { recursive: true });
  writeStandIns(dir.join('bin'));
  return worldIn(dir, { policy: await freePort(), mirror: await freePort() }, 0);
}

function worldIn(dir: TempDir, ports: Ports, passedMs: number): RunbookWorld {
  let shiftMs = passedMs;
  let code = '';
  const mapped = (machine: Machine, text: string): string =>
    text
      .replaceAll('0.0.0.0:8080', `127.0.0.1:${machine === 'mirror' ? ports.mirror : ports.policy}`)
      .replaceAll('http://policy.example.net:8080/', `http://127.0.0.1:${ports.policy}/`)
      .replaceAll('http://mirror.example.net:8080/', `http://127.0.0.1:${ports.mirror}/`)
      .replace(/(?<=file:\/\/|(?<![\w.:/-]))\/media\/usb(?=\/|\b)/g, dir.join('shared/media/usb'))
      .replace(/(?<![\w.:/-])\/(etc|srv|var|run)(?=\/)/g, `${dir.join(machine)}/$1`);
  const environment = (machine: Machine, { typed = [] }: TypeOptions): Record<string, string> => {
    const config = dir.join(machine, 'etc/writ/agent.yaml');
    const [passphrase, next] = typed;
    const nextFile = dir.join(machine, 'new-passphrase');
    if (next !== undefined) fs.writeFileSync(nextFile, next);
    return {
      PATH: `${dir.join('bin')}:${process.env['PATH'] ?? ''}`,
      HOME: dir.join(machine, 'home'),
      WORLD: dir.path,
      MACHINE: machine,
      NODE_OPTIONS: `--import=${shiftedClock}`,
      WRIT_TEST_SHIFT_MS: String(shiftMs),
      WRIT_CONFIG: config,
      // Codes that people exchange by voice and type when the program asks.
      ...(code === '' ? {} : { WRIT_SIGN_CONFIRM: code, WRIT_ROOT_COMMIT_CONFIRM: code }),
      ...(passphrase === undefined ? {} : { WRIT_PASSPHRASE: passphrase }),
      ...(next === undefined ? {} : { WRIT_KEY_PASSPHRASE_NEW_PASSPHRASE_FILE: nextFile }),
    };
  };
  const type: RunbookWorld['type'] = async (machine, text, options = {}) => {
    const env = environment(machine, options);
    const run = await runShell(mapped(machine, text), { cwd: dir.join(machine, 'home'), env });
    code = /Code (\S+): compare it/.exec(run.output)?.[1] ?? code;
    return run;
  };
  const services = (): { machine: Machine; name: string }[] =>
    machines.flatMap((machine) =>
      fs
        .readdirSync(dir.join(machine, 'run'))
        .flatMap((file) => /^(.*)\.pid$/.exec(file)?.[1] ?? [])
        .map((name) => ({ machine, name })),
    );
  const systemctl = async (verb: string, list: ReturnType<typeof services>): Promise<void> => {
    for (const { machine, name } of list) {
      const run = await type(machine, `systemctl ${verb} ${name}`);
      if (run.exitCode !== 0) throw new Error(`${verb} ${name} on ${machine}: ${run.output}`);
    }
  };
  const hasOnlineKeys = ({ machine, name }: { machine: Machine; name: string }): boolean => {
    const env = dir.join(machine, 'etc/writ/server.env');
    return name === 'writ-server' && fs.readFileSync(env, 'utf8').includes('WRIT_SERVE_KEYS=');
  };
  const stopAll = (): Promise<void> => systemctl('stop', services());
  return {
    dir,
    type,
    path: (machine, path) => mapped(machine, path),
    sleep: async (ms) => {
      if (ms === 0) return;
      const running = services();
      await systemctl('stop', running);
      shiftMs += ms;
      for (const { machine, name } of running.filter(hasOnlineKeys)) {
        // A running server would have signed all the time, until the publisher's own roles expired.
        const signed = await type(
          machine,
          'writ refresh --repository /srv/writ/repo --keys /etc/writ/online',
        );
        if (signed.exitCode !== 0 && !/expired/.test(signed.output))
          throw new Error(`${name} could not go on: ${signed.output}`);
      }
      await systemctl('start', running);
    },
    nowMs: () => Date.now() + shiftMs,
    stopAll,
    copy: () => copyWorld(dir, ports, shiftMs),
    [Symbol.asyncDispose]: async () => {
      await stopAll();
      dir[Symbol.dispose]();
    },
  };
}

async function copyWorld(from: TempDir, old: Ports, shiftMs: number): Promise<RunbookWorld> {
  const dir = tempDir();
  execFileSync('cp', ['-a', `${from.path}/.`, dir.path]);
  const ports = { policy: await freePort(), mirror: await freePort() };
  for (const machine of machines) {
    const files = ['writ/agent.yaml', 'writ/server.env'];
    for (const path of files.map((name) => dir.join(machine, 'etc', name)).filter(fs.existsSync)) {
      const text = fs.readFileSync(path, 'utf8').replaceAll(from.path, dir.path);
      fs.writeFileSync(path, text.replaceAll(`:${old.policy}`, `:${ports.policy}`));
    }
  }
  return worldIn(dir, ports, shiftMs);
}

/** Runs one command of the page without input, for at most a minute. */
function runShell(
  text: string,
  { cwd, env }: { readonly cwd: string; readonly env: Record<string, string> },
): Promise<Typed> {
  return new Promise((resolve, reject) => {
    const child = spawn('sh', ['-c', text], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], timeout: 60_000 });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (chunk: string) => {
        output += chunk;
      });
    }
    child.on('error', reject);
    child.on('close', (exitCode) => resolve({ exitCode, output }));
  });
}
