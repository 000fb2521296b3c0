// Runs a part of a test in a Node process of its own: to set a umask, to kill it, or to read its stderr.
// The script is an ES module; `import(at('src/...'))` gives it compiled files of Writ.
import { type ChildProcess, spawn } from 'node:child_process';
import { pathToFileURL } from 'node:url';
import { type CommandResult, runCommand } from '../../../src/platform/process/run-command.js';
import { projectRoot } from '../sources/source-files.js';

/**
 * The command that runs a script.
 * @param checkout the checkout with the compiled files that `at` names
 */
export function scriptArgv(script: string, checkout = projectRoot): [string, ...string[]] {
  const compiled = JSON.stringify(pathToFileURL(`${checkout}/dist/`).href);
  const prelude = `const at = (name) => new URL(name, ${compiled}).href;\n`;
  return [process.execPath, '--input-type=module', '-e', prelude + script];
}

/**
 * Runs a script to its end, at most two minutes. A failure and the end of that time are results; it does not reject for them.
 * @param script text of an ES module for Node; `at('src/...')` gives compiled files of Writ
 */
export function runNodeScript(script: string, env: Record<string, string> = {}): Promise<CommandResult> {
  // Passes the coverage directory, so that code of Writ in the script counts as covered.
  const folder = process.env['NODE_V8_COVERAGE'];
  const coverage: Record<string, string> = folder === undefined ? {} : { NODE_V8_COVERAGE: folder };
  const limits = { timeoutMs: 120_000, maxOutputBytes: 100_000 };
  return runCommand({ argv: scriptArgv(script), env: { ...coverage, ...env }, ...limits });
}

export interface RunningScript {
  readonly pid: number;
  readonly child: ChildProcess;
  /** Resolves with the first line it prints; rejects when it ends without one. */
  readonly firstLine: Promise<string>;
}

/** Starts the script and leaves it running; the caller kills it. */
export function startScript(
  script: string,
  { stdin = 'ignore' }: { readonly stdin?: 'ignore' | 'pipe' } = {},
): RunningScript {
  const [program, ...args] = scriptArgv(script);
  const child = spawn(program, args, { stdio: [stdin, 'pipe', 'inherit'] });
  const firstLine = new Promise<string>((resolve, reject) => {
    let text = '';
    child.stdout?.on('data', (chunk: Buffer) => {
      text += chunk.toString('utf8');
      if (text.includes('\n')) resolve(text.slice(0, text.indexOf('\n')));
    });
    child.on('close', (code) => reject(new Error(`the script ended early (${code})`)));
  });
  return { pid: child.pid ?? 0, child, firstLine };
}
