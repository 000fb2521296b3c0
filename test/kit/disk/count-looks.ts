// Counts the calls of node:fs with paths below a directory, to measure the work for a big policy without a clock. Counts this
// process only.
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';

type Calls = Record<string, unknown>;

/** @returns the paths of the calls during `act`, unchanged and in order */
export async function readCallsBelow(directory: string, act: () => Promise<unknown>): Promise<string[]> {
  const paths: string[] = [];
  const calls = fs as unknown as Calls;
  const kept = Object.entries(calls).filter(([name, call]) => isReadCall(name) && typeof call === 'function');
  for (const [name, call] of kept) {
    calls[name] = (path: unknown, ...rest: unknown[]): unknown => {
      if (typeof path === 'string' && path.startsWith(directory)) paths.push(path);
      return (call as (...all: unknown[]) => unknown)(path, ...rest);
    };
  }
  syncBuiltinESMExports();
  try {
    await act();
    return paths;
  } finally {
    Object.assign(calls, Object.fromEntries(kept));
    syncBuiltinESMExports();
  }
}

function isReadCall(name: string): boolean {
  return /^(?:[fl]?stat|open|readdir|readlink|exists|access|readFile)Sync$/.test(name);
}
