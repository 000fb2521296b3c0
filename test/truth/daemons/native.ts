// Two native workers in one group: the Node program of the page, and the Python sample. Each reports what it uses, over HTTP
// or on its stdout.
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectRoot } from '../../kit/sources/source-files.js';
import type { Daemon } from '../parts/daemon.js';
import { curl, joinVersions, runInGroup } from '../parts/processes.js';

function limits(version: string, more: object = {}): string {
  return JSON.stringify({ requestsPerMinute: Number(version.slice(1)), ...more });
}

export const native: Daemon = {
  name: 'native',
  packages: ['python3', 'curl'],
  programs: ['python3', 'curl'],
  process: 'daemon',
  // They can start at any time, but a first pull without an agent does not wait for workers.
  starts: 'after-policy',
  good: (version) => ({ 'limits.json': limits(version) }),
  bad: (version) => ({ 'limits.json': limits(version).replace('}', '') }),
  // Only the Node worker checks bursts: it refuses what the other one accepts.
  half: (version) => ({ 'limits.json': limits(version, { burst: -1 }) }),
  empty: { never: 'nothing but the workers themselves could' },
  open: ({ dir, policy, ports: [port] }) => {
    const [program, socket] = [join(dir, 'worker.mjs'), join(policy, '../../run/workers/limits.sock')];
    let starts = 0;
    let isStopped = true;
    const pythonLog = (): string => join(dir, `python-${starts}.log`);
    const python = runInGroup(() => ({
      argv: ['python3', join(projectRoot, 'docs/examples/limits/worker.py'), socket, 'limits-python'],
      log: pythonLog(),
      isUp: () => existsSync(pythonLog()) && readFileSync(pythonLog(), 'utf8') !== '',
    }));
    const node = runInGroup({
      argv: [process.execPath, program],
      log: join(dir, 'node.log'),
      isUp: async () => (await curl(`http://127.0.0.1:${port}/`)) !== undefined,
    });
    const servedByPython = (): string | undefined => {
      if (isStopped) return undefined;
      const last = [...readFileSync(pythonLog(), 'utf8').matchAll(/^generation \d+: (\d+) /gm)].at(-1);
      return last && `v${last[1]}`;
    };
    const kill = async (): Promise<void> => {
      isStopped = true;
      await Promise.all([node.kill(), python.kill()]);
    };
    return {
      places: [
        ['/run/writ/workers/limits.sock', socket],
        ['8081', String(port)],
      ],
      prepare: (own) => {
        writeFileSync(program, own);
        mkdirSync(join(dir, 'node_modules'));
        symlinkSync(projectRoot, join(dir, 'node_modules/writ'));
      },
      start: async () => {
        starts += 1;
        await Promise.all([node.start(), python.start()]);
        isStopped = false;
      },
      kill,
      stopAndGo: (signal) => {
        isStopped = signal === 'SIGSTOP';
        node.stopAndGo(signal);
        python.stopAndGo(signal);
      },
      [Symbol.asyncDispose]: kill,
      ask: async () => {
        const servedByNode = await curl(`http://127.0.0.1:${port}/`);
        return joinVersions([
          servedByNode === undefined || servedByNode === 'nothing' ? undefined : `v${servedByNode}`,
          servedByPython(),
        ]);
      },
    };
  },
};
