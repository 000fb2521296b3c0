// `writ serve` as a process, and what it has counted itself.
import { startWrit } from '../../test/kit/cli/writ-process.js';
import type { Sample } from '../measure/sample.js';

export interface WritServer extends AsyncDisposable {
  /** Without a slash at its end. */
  readonly url: string;
  readonly pid: number;
  /** Adds to a sample what was asked for and sent meanwhile, by the server's own counters. */
  counted<T extends Sample>(act: () => Promise<T>): Promise<T & Served>;
}

export interface Served {
  readonly requests: number;
  readonly receivedBytes: number;
}

/** @param options.logFile left out: the log is kept in memory here */
export async function startWritServer(
  repository: string,
  flags: readonly string[] = [],
  { logFile }: { readonly logFile?: string } = {},
): Promise<WritServer> {
  const args = ['serve', '--repository', repository, '--listen', '127.0.0.1:0', ...flags];
  const under = logFile === undefined ? [] : ['sh', '-c', 'exec "$@" 2>"$0"', logFile];
  const server = startWrit(args, {}, { under });
  const [, url = ''] = await server.waitForStdout(/LISTENING (\S+)/);
  return {
    url,
    pid: server.child.pid ?? 0,
    counted: async (act) => {
      const before = await servedBy(url);
      const sample = await act();
      const after = await servedBy(url);
      const requests = after.requests - before.requests;
      return { ...sample, requests, receivedBytes: after.receivedBytes - before.receivedBytes };
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

/** Of metadata and targets; the question for the counters is none of them. */
async function servedBy(url: string): Promise<Served> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const sum = (name: string): number =>
    [...text.matchAll(new RegExp(`^${name}\\{([^}]*)\\} (\\S+)$`, 'gm'))]
      .filter(([, labels]) => !/route="(?:metrics|health)"/.test(labels ?? ''))
      .reduce((total, [, , value]) => total + Number(value), 0);
  return { requests: sum('writ_server_requests_total'), receivedBytes: sum('writ_server_sent_bytes_total') };
}
