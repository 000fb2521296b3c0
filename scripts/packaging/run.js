// Starts the programs that make packages, and reports the output of a failed one. Decides nothing.
import { spawnSync } from 'node:child_process';

/** @returns the stdout of the program */
export function run(program, args, { cwd, env } = {}) {
  const options = { cwd, env: { ...process.env, ...env }, encoding: 'utf8', maxBuffer: 64_000_000 };
  const { status, error, stdout, stderr } = spawnSync(program, args, options);
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`${program} ${args.join(' ')}: exit ${status}\n${stdout}${stderr}`);
  return stdout;
}
