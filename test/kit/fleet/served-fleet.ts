// `writ fleet serve` as a process with its own store, and the tokens and requests of a test.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { jsonOf, runWrit } from '../cli/run-writ.js';
import { startWrit, type WritProcess } from '../cli/writ-process.js';
import { type TempDir, tempDir } from '../disk/temp-dir.js';
import { type SignedHost, signedHost } from './signed-host.js';

export interface ServedFleet {
  readonly dir: TempDir;
  readonly store: string;
  readonly url: string;
  readonly server: WritProcess;
  /** Made in the store directly. @returns the token */
  token(...flags: readonly string[]): Promise<string>;
  /** Sends a GET with a token. `path` is below the URL of the server. */
  get(path: string, token: string, headers?: Readonly<Record<string, string>>): Promise<Response>;
  /** A host that is enrolled and has sent no report. */
  host(name: string, labels?: Readonly<Record<string, string>>): Promise<SignedHost>;
  /** @returns flags of a command that queries the server with this role */
  roleFlags(role: 'view' | 'detail' | 'operate'): Promise<readonly string[]>;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * @param flags further flags of `writ fleet serve`
 * @returns the process after it listens, with a store of its own
 */
export async function servedFleet(...flags: readonly string[]): Promise<ServedFleet> {
  const dir = tempDir();
  const store = dir.join('store');
  const token: ServedFleet['token'] = async (...more) => {
    const run = await runWrit(['fleet', 'token', 'create', ...more, '--store', store, '--json']);
    assert.equal(run.exitCode, 0, run.stdout);
    return String(jsonOf(run)['token']);
  };
  const server = startWrit(['fleet', 'serve', '--store', store, '--listen', '127.0.0.1:0', ...flags]);
  const [, url = ''] = await server.waitForStdout(/LISTENING (\S+)/);
  let forHosts: string | undefined;
  return {
    dir,
    store,
    url,
    server,
    token,
    get: (path, bearer, headers = {}) =>
      fetch(new URL(path, url), { headers: { authorization: `Bearer ${bearer}`, ...headers } }),
    host: async (name, labels) => {
      forHosts ??= await token('--for', 'hosts');
      const host = signedHost(url, name);
      const answer = await host.enrol(forHosts, labels);
      assert.equal(answer.status, 200, await answer.clone().text());
      return host;
    },
    roleFlags: async (role) => {
      const file = dir.join(`${role}.token`);
      writeFileSync(file, `${await token('--for', 'people', '--role', role)}\n`, { mode: 0o600 });
      return ['--url', url, '--token-file', file];
    },
    [Symbol.asyncDispose]: async () => {
      await server[Symbol.asyncDispose]();
      dir[Symbol.dispose]();
    },
  };
}
