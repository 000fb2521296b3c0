// Where the demo plays: a temporary directory, the processes in it, and `writ` as a command of the reader's.
// Every command is a child process of the real program; nothing of Writ runs inside the demo. Leaves nothing behind.
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { type Child, Children } from './children.js';
import { expectEqual, expectParts, Screen, Unexpected } from './screen.js';

/** The folder of Writ itself, seen from dist/demo. */
export const project = join(import.meta.dirname, '..', '..');
const writProgram = join(project, 'dist', 'writ', 'main.js');

export interface Wanted {
  readonly exitCode: number;
  /** What the answer on stdout has to say. */
  readonly says: readonly string[];
}

export class Stage {
  readonly screen: Screen = new Screen();
  readonly children: Children = new Children();
  /** Absolute; commands run in it, so that their paths are short. */
  readonly directory: string = enterableDirectory();

  path(...names: readonly string[]): string {
    return join(this.directory, ...names);
  }

  /**
   * Shows and runs one `writ` command to its end.
   * @returns its answer, without colours
   * @throws Unexpected for another exit code, or when the answer does not say what it has to
   */
  async writ(args: readonly string[], { exitCode, says }: Wanted): Promise<string> {
    this.screen.command(['writ', ...args]);
    const child = this.children.start(`writ ${args[0]}`, {
      argv: [process.execPath, writProgram, ...args],
      cwd: this.directory,
      env: this.#writEnvironment(),
      stderr: 'inherit',
    });
    const actual = await child.ended;
    this.screen.output(child.stdout());
    this.screen.say(`(exit ${actual})`);
    const answer = stripVTControlCharacters(child.stdout());
    expectEqual(`the exit code of writ ${args[0]}`, actual, exitCode);
    expectParts(`the answer of writ ${args[0]}`, answer, says);
    return answer;
  }

  /** Shows and starts a `writ` command that goes on running. */
  startWrit(args: readonly string[]): Child {
    this.screen.command(['writ', ...args], 'background');
    const argv = [process.execPath, writProgram, ...args] as const;
    return this.start(`writ ${args[0]}`, argv, this.#writEnvironment());
  }

  /**
   * One line of a file changes; said as the command that would do it.
   * @throws Unexpected when the file does not have it
   */
  edit(file: string, from: string, to: string): void {
    this.screen.command(['sed', '-i', `s/${from.replaceAll(/[[\]]/g, '\\$&')}/${to}/`, file]);
    const text = readFileSync(this.path(file), 'utf8');
    if (!text.includes(from)) throw new Unexpected(`${file} has no "${from}"`);
    writeFileSync(this.path(file), text.replace(from, to));
  }

  start(name: string, argv: readonly [string, ...string[]], env: NodeJS.ProcessEnv = process.env): Child {
    return this.children.start(name, { argv, cwd: this.directory, env });
  }

  async clear(): Promise<void> {
    await this.children.endAll();
    this.#remove();
  }

  /** The same without waiting. */
  clearAtOnce(): void {
    this.children.killAll();
    this.#remove();
  }

  #remove(): void {
    rmSync(this.directory, { recursive: true, force: true, maxRetries: 3 });
  }

  /** Flags that the reader has in his environment would change what the commands do. */
  #writEnvironment(): NodeJS.ProcessEnv {
    const own = Object.entries(process.env).filter(([name]) => !name.startsWith('WRIT_'));
    const color = process.stdout.isTTY && process.env['NO_COLOR'] === undefined ? { FORCE_COLOR: '1' } : {};
    return { ...Object.fromEntries(own), ...color };
  }
}

/** Others may pass through it, and list nothing: the sandbox of root runs checks as `nobody`. Keys have modes of their own. */
function enterableDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'writ-demo-'));
  chmodSync(directory, 0o711);
  return directory;
}
