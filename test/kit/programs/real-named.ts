// A real BIND with its own configuration, key and ports on loopback, which serves one zone from a file of the test. Needs
// named, rndc and dig.
import { execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { defaultPath } from '../../../src/platform/process/run-command.js';
import { until } from '../assert/until.js';
import { freePort } from './free-port.js';

const execute = promisify(execFile);

export interface RealNamed extends AsyncDisposable {
  readonly port: number;
  readonly pid: number;
  /** Command `rndc -c FILE reload ZONE`. */
  readonly reload: readonly [string, ...string[]];
  /** @returns texts of a TXT record with quotes, as dig prints them; empty without an answer */
  text(name: string): Promise<string>;
  /** Runs `reload`. @returns the output of rndc */
  reloadByHand(): Promise<string>;
  log(): string;
}

/**
 * @param directory for its own files; it must not exist
 * @param zone name and file; the file may be missing, then the zone is served from the first reload on
 * @returns named on 127.0.0.1 with its port and the rndc command; disposing it ends it. @throws Error if named does not come up
 */
export async function startNamed(
  directory: string,
  zone: { readonly name: string; readonly file: string },
): Promise<RealNamed> {
  mkdirSync(directory);
  const [port, controlPort] = [await freePort(), await freePort()];
  const key = `key own { algorithm hmac-sha256; secret "${randomBytes(32).toString('base64')}"; };\n`;
  const [config, control] = [join(directory, 'named.conf'), join(directory, 'rndc.conf')];
  const listen = `listen-on port ${port} { 127.0.0.1; }; listen-on-v6 { none; };`;
  const noFiles = `pid-file none; session-keyfile none; managed-keys-directory "${directory}";`;
  const closed = 'recursion no; notify no; dnssec-validation no;';
  writeFileSync(
    config,
    `${key}controls { inet 127.0.0.1 port ${controlPort} allow { 127.0.0.1; } keys { own; }; };
options { directory "${directory}"; ${listen} ${noFiles} ${closed} };
zone "${zone.name}" { type primary; file "${zone.file}"; };\n`,
  );
  writeFileSync(
    control,
    `${key}options { default-key own; default-server 127.0.0.1; default-port ${controlPort}; };\n`,
  );
  const env = { PATH: defaultPath };
  const child = spawn('named', ['-f', '-g', '-n', '1', '-c', config], {
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  let log = '';
  child.stderr.on('data', (chunk: Buffer) => {
    log += chunk.toString();
  });
  await until(() => {
    if (child.exitCode !== null) throw new Error(`named did not come up: ${log}`);
    return / running$/m.test(log);
  });
  const reload = ['rndc', '-c', control, 'reload', zone.name] as const;
  return {
    port,
    pid: child.pid ?? 0,
    reload,
    log: () => log,
    text: async (name) => {
      const args = ['+short', '+tries=1', '+time=30', '@127.0.0.1', '-p', String(port), name, 'TXT'];
      return (await execute('dig', args)).stdout.trim();
    },
    reloadByHand: async () => (await execute(reload[0], reload.slice(1), { env })).stdout.trim(),
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGKILL');
      await ended;
    },
  };
}
