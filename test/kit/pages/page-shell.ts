// Runs the commands of a page in one shell as its reader does: variables, directories and background jobs last from one
// command to the next. It has an empty home directory, another user, replacements (ports, paths of an installed package), and
// ends all processes.
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import * as fs from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { writProgram } from '../cli/writ-program.js';
import type { TempDir } from '../disk/temp-dir.js';
import { readableCheckout } from '../sources/readable-checkout.js';
import { projectRoot } from '../sources/source-files.js';
import { blocksOf, commandsIn, oneLine, type PageCommand } from './page-commands.js';

export interface PageShell extends AsyncDisposable {
  /** Runs each command of the `sh` blocks in a text, and asserts the result that the text states. */
  play(text: string): Promise<void>;
  type(text: string): Promise<Typed>;
}

export interface Typed {
  readonly exitCode: number;
  /** stdout and stderr in the order of a terminal. */
  readonly output: string;
}

export interface PageShellOptions {
  /** `nobody` if the test runs as root, otherwise the current user. */
  readonly user: 'nobody' | 'root';
  /** Working directory; the empty home by default. */
  readonly cwd?: string;
  /** Replacements of texts on the page; the longest is replaced first. */
  readonly replacements?: Readonly<Record<string, string>>;
  readonly env?: Readonly<Record<string, string>>;
  /** Shell scripts by name, which precede other programs in PATH. */
  readonly programs?: Readonly<Record<string, string>>;
  /** After a matching command a shell condition is awaited, for at most half a minute. */
  readonly settles?: readonly (readonly [command: RegExp, condition: string])[];
}

/** Paths of the examples in a package, with those of a checkout. */
export const packagedExamples = {
  '/usr/share/doc/writ/examples/bundles': `${projectRoot}/bundles`,
  '/usr/share/doc/writ/examples': `${projectRoot}/docs/examples`,
};
const unprivilegedId = 65_534;
const mark = '--- the command has ended: ';
const commandTimeoutMs = 60_000;

/** @param dir becomes the home directory */
export function pageShell(dir: TempDir, options: PageShellOptions): PageShell {
  const drops = options.user === 'nobody' && userInfo().uid === 0;
  const { replacements = {}, settles = [], cwd = dir.path } = drops ? withReadablePaths(options) : options;
  const program = drops ? join(readableCheckout(), 'dist/writ/main.js') : writProgram;
  const bin = dir.join('.bin');
  fs.mkdirSync(bin);
  const programs = { writ: `exec "${process.execPath}" "${program}" "$@"`, ...options.programs };
  for (const [name, script] of Object.entries(programs))
    fs.writeFileSync(`${bin}/${name}`, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  const shell = start(dir, { cwd, drops, env: options.env ?? {} }, bin);
  let received = '';
  let onOutput: () => void = () => undefined;
  for (const stream of [shell.stdout, shell.stderr])
    stream?.setEncoding('utf8').on('data', (chunk: string) => {
      received += chunk;
      onOutput();
    });
  const type = async (text: string): Promise<Typed> => {
    received = '';
    const typed = replaced(text, replacements);
    // stdin is empty, except for the input in the command.
    shell.stdin?.write(`eval ${quoted(typed)} </dev/null; printf '\\n%s%s\\n' '${mark}' "$?"\n`);
    const ended = await new Promise<RegExpExecArray>((resolve, reject) => {
      const fail = (why: string): void => reject(new Error(`${why}: ${typed}\n${received}`));
      const timer = globalThis.setTimeout(() => fail('a minute is over'), commandTimeoutMs);
      const closed = (): void => fail('the shell has ended');
      shell.once('close', closed);
      onOutput = () => {
        const found = new RegExp(`\\n?${mark}(\\d+)\\n`).exec(received);
        if (found === null) return;
        globalThis.clearTimeout(timer);
        shell.off('close', closed);
        resolve(found);
      };
    });
    return { exitCode: Number(ended[1]), output: received.slice(0, ended.index) };
  };
  const settle = async (text: string): Promise<void> => {
    for (const [command, condition] of settles.filter(([command]) => command.test(text))) {
      const waited = await type(
        `for n in $(seq 300); do if ${condition}; then break; fi; sleep 0.1; done; ${condition}`,
      );
      assert.equal(waited.exitCode, 0, `${command} did not come to ${condition}\n${waited.output}`);
    }
  };
  const one = async ({ text, exitCode, shows }: PageCommand): Promise<void> => {
    const run = await type(text);
    const transcript = `$ ${text}\n${run.output}`;
    assert.equal(run.exitCode, exitCode, transcript);
    const wanted = replaced(shows, replacements);
    assert.ok(oneLine(run.output).includes(oneLine(wanted)), `"${wanted}" is not in\n${transcript}`);
    await settle(text);
  };
  return {
    type,
    play: async (text) => {
      const commands = blocksOf(text).flatMap(commandsIn);
      assert.ok(commands.length > 0, 'no command in it');
      for (const command of commands) await one(command);
    },
    [Symbol.asyncDispose]: async () => {
      if (shell.exitCode !== null || shell.signalCode !== null) return;
      const ended = new Promise((resolve) => shell.once('close', resolve));
      // All processes that it started are in its group.
      process.kill(-(shell.pid ?? 0), 'SIGKILL');
      await ended;
    },
  };
}

interface StartOptions {
  readonly cwd: string;
  /** Whether the shell changes from root to `nobody`. */
  readonly drops: boolean;
  readonly env: Readonly<Record<string, string>>;
}

/** Replaces paths by those of a checkout that `nobody` may read. */
function withReadablePaths({ replacements = {}, cwd, ...options }: PageShellOptions): PageShellOptions {
  const readable = (text: string): string => text.replaceAll(projectRoot, readableCheckout());
  const readablePaths = Object.entries(replacements).map(([from, to]) => [from, readable(to)]);
  return {
    ...options,
    replacements: Object.fromEntries(readablePaths),
    ...(cwd === undefined ? {} : { cwd: readable(cwd) }),
  };
}

function start(dir: TempDir, { cwd, drops, env }: StartOptions, bin: string): ChildProcess {
  if (drops) fs.chownSync(dir.path, unprivilegedId, unprivilegedId);
  fs.chmodSync(dir.path, 0o755);
  return spawn('bash', ['--noprofile', '--norc'], {
    cwd,
    detached: true,
    env: {
      PATH: `${bin}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin`,
      HOME: dir.path,
      LC_ALL: 'C',
      ...env,
    },
    ...(drops ? { uid: unprivilegedId, gid: unprivilegedId } : {}),
    stdio: 'pipe',
  });
}

function replaced(text: string, replacements: Readonly<Record<string, string>>): string {
  return Object.entries(replacements).reduce((all, [from, to]) => all.replaceAll(from, to), text);
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
