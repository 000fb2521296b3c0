// Two connected network namespaces: a host's with its own resolver, and a server's. The machine is unchanged, and the
// namespaces end with the processes that this file started.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import type { ContactServer } from '../../../src/core/config/config.js';
import { until } from '../assert/until.js';
import { scriptArgv } from '../cli/child-script.js';
import type { TempDir } from '../disk/temp-dir.js';
import { needs } from '../programs/real-programs.js';

/** Options for node:test. */
export const needsNetworkPair = {
  ...needs('unshare', 'util-linux'),
  ...needs('ip', 'iproute2'),
  ...needs('nft', 'nftables'),
};

export const serverAddress = '10.9.0.2';
export const serverName = 'policy.test';
export const serverPort = 8080;
/** Port of a fleet server on the same machine as the repository. */
export const fleetPort = 8090;

export interface NetworkPair extends AsyncDisposable {
  /** Runs a command on the host. */
  readonly onHost: (...command: string[]) => [string, ...string[]];
  /** Runs a command on the server. */
  readonly onServer: (...command: string[]) => [string, ...string[]];
  /** File that the host's resolver reads; write it in place. */
  readonly resolverFile: string;
  /** Sends one request from the host as an agent does. @returns the reason of a failure; undefined if the server answered */
  ask(url: string, server?: ContactServer): Promise<string | undefined>;
  /** Sets the status of each answer of the repository; `off`: no process listens. */
  answerWith(status: number | 'off'): Promise<void>;
}

const peer = `
import http from 'node:http';
import dgram from 'node:dgram';
import { createInterface } from 'node:readline';
let status = 200;
const server = http.createServer((request, response) => { response.writeHead(status); response.end(); });
const listen = () => new Promise((resolve) => server.listen(${serverPort}, '${serverAddress}', resolve));
const dns = dgram.createSocket('udp4');
dns.on('message', (query, from) => {
  const end = query.indexOf(0, 12) + 5;
  const isAddress = query.readUInt16BE(end - 4) === 1;
  const head = Buffer.from([query[0], query[1], 0x81, 0x80, 0, 1, 0, isAddress ? 1 : 0, 0, 0, 0, 0]);
  const record = isAddress ? Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 10, 9, 0, 2]) : Buffer.alloc(0);
  dns.send(Buffer.concat([head, query.subarray(12, end), record]), from.port, from.address);
});
await new Promise((resolve) => dns.bind(53, '${serverAddress}', resolve));
await listen();
const fleet = http.createServer((request, response) => response.end());
await new Promise((resolve) => fleet.listen(${fleetPort}, '${serverAddress}', resolve));
console.log('ready');
for await (const line of createInterface({ input: process.stdin })) {
  if (line === 'off') await new Promise((resolve) => { server.close(resolve); server.closeAllConnections(); });
  else { if (!server.listening) await listen(); status = Number(line); }
  console.log('done');
}
`;

const asker = `
import { createInterface } from 'node:readline';
const { askServer } = await import(at('src/agent/contact/ask-server.js'));
const { systemClock: clock } = await import(at('src/platform/time/clock.js'));
console.log('ready');
for await (const line of createInterface({ input: process.stdin })) {
  const [server, url] = line.split(' ');
  const nowhere = 'http://127.0.0.1:1/';
  const repository = [{ url: server === 'repository' ? url : nowhere, redirects: [] }];
  const fleet = { url: server === 'fleet' ? url : nowhere };
  const reason = await askServer({ repository, fleet }, server, { clock, timeoutMs: 1500 });
  console.log(JSON.stringify({ reason }));
}
`;

/** @returns the pair; undefined if this user may make no namespaces */
export async function networkPair(dir: TempDir): Promise<NetworkPair | undefined> {
  const user = process.getuid?.() === 0 ? [] : ['-r'];
  const children: ChildProcess[] = [];
  const apart = async (command: readonly string[]): Promise<ChildProcess | undefined> => {
    const [program = '', ...args] = command;
    const child = spawn(program, args, { stdio: 'ignore' });
    children.push(child);
    await until(() => child.exitCode !== null || isApart(child));
    return child.exitCode === null ? child : undefined;
  };
  const host = await apart(['unshare', ...user, '-nm', 'sleep', '900']);
  if (host === undefined) {
    if (process.env['WRIT_TEST_REQUIRE_REAL'] === '1')
      throw new Error('this user may make no network namespaces');
    return undefined;
  }
  const onHost = (...command: string[]): [string, ...string[]] => {
    const users = user.length === 0 ? [] : ['--user', '--preserve-credentials'];
    return ['nsenter', '-t', String(host.pid), ...users, '--net', '--mount', ...command];
  };
  const server = await apart(onHost('unshare', '-n', 'sleep', '900'));
  if (server === undefined) return undefined;
  const onServer = (...command: string[]) =>
    onHost('nsenter', `--net=/proc/${server.pid}/ns/net`, ...command);
  const run = ([program, ...args]: [string, ...string[]]) => execFileSync(program, args, { stdio: 'pipe' });
  const resolverFile = dir.join('resolv.conf');
  writeFileSync(resolverFile, `nameserver ${serverAddress}\noptions timeout:1 attempts:1\n`);
  const hostScript = `ip link set lo up && ip link add cable type veth peer name far netns ${server.pid} &&
    ip address add 10.9.0.1/24 dev cable && ip link set cable up && mount --bind ${resolverFile} /etc/resolv.conf`;
  run(onHost('sh', '-ec', hostScript));
  run(onServer('sh', '-ec', `ip address add ${serverAddress}/24 dev far && ip link set far up`));
  const [answers, asks] = [talkTo(onServer(...scriptArgv(peer))), talkTo(onHost(...scriptArgv(asker)))];
  children.push(answers.child, asks.child);
  await Promise.all([answers.ready, asks.ready]);
  return {
    ...{ onHost, onServer },
    resolverFile,
    ask: async (url, server = 'repository') =>
      (JSON.parse(await asks.askLine(`${server} ${url}`)) as { reason?: string }).reason,
    answerWith: async (status) => void (await answers.askLine(String(status))),
    [Symbol.asyncDispose]: async () => {
      for (const child of children) child.kill('SIGKILL');
      await Promise.all(children.map((child) => child.exitCode ?? child.signalCode ?? once(child, 'exit')));
    },
  };
}

function isApart({ pid }: ChildProcess): boolean {
  const link = (of: string) => execFileSync('readlink', [`/proc/${of}/ns/net`], { encoding: 'utf8' });
  try {
    const comm = execFileSync('cat', [`/proc/${pid}/comm`], { encoding: 'utf8' });
    return link(String(pid)) !== link('self') && comm.trim() === 'sleep';
  } catch {
    return false;
  }
}

/** A program that answers each line with a line, after a first line when it is ready. */
function talkTo([program, ...args]: readonly [string, ...string[]]) {
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async (): Promise<string> => {
    const line = await lines.next();
    if (line.done === true) throw new Error(`${program} ended`);
    return line.value;
  };
  const askLine = (text: string): Promise<string> => {
    child.stdin.write(`${text}\n`);
    return next();
  };
  return { child, ready: next(), askLine };
}
