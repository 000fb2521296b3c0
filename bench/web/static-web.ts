// nginx as the web server of the peers: files of one directory, and a count of requests and bytes.
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type RunningNginx, startNginx } from '../../test/kit/programs/nginx.js';
import type { Sample } from '../measure/sample.js';

export interface StaticWeb extends AsyncDisposable {
  /** Without a slash at its end. */
  readonly url: string;
  readonly pid: number;
  /** Adds to a sample what was asked for and sent meanwhile. */
  counted(act: () => Promise<Sample>): Promise<Sample>;
}

/** @param root whatever is written below it later is served too */
export async function startStaticWeb(directory: string, root: string): Promise<StaticWeb> {
  mkdirSync(directory);
  const log = join(directory, 'access');
  const nginx: RunningNginx = await startNginx(
    directory,
    (listen) =>
      `log_format counts '$bytes_sent'; server { listen ${listen}; root ${root}; access_log ${log} counts; keepalive_requests 1000000; }`,
  );
  const sent = (): number[] => readFileSync(log, 'utf8').split('\n').slice(0, -1).map(Number);
  return {
    url: nginx.url,
    pid: nginx.pid,
    counted: async (act) => {
      const before = sent().length;
      const sample = await act();
      const mine = sent().slice(before);
      return { ...sample, requests: mine.length, receivedBytes: mine.reduce((sum, bytes) => sum + bytes, 0) };
    },
    [Symbol.asyncDispose]: () => nginx[Symbol.asyncDispose](),
  };
}
