// Records the files that a version of Writ leaves on the disk, for tests of upgrades: a repository with its keys, the state of a
// host after two releases and a rollback to the first, and the store of its fleet server. Keys and tokens are for these tests
// only and protect nothing.
// Run it once for a version, at its tag: node test/recorded/record.js dist/writ/main.js [OUT.tar.gz]
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const program = resolve(process.argv[2] ?? 'dist/writ/main.js');
const version = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')).version;
const out = resolve(process.argv[3] ?? join(import.meta.dirname, `v${version}.tar.gz`));
const place = mkdtempSync(join(tmpdir(), 'writ-record-'));
const at = (...names) => join(place, ...names);
const [repository, keys, config] = [at('repository'), at('keys'), at('agent.yaml')];
const writ = (...args) => execFileSync(process.execPath, [program, ...args], { stdio: 'inherit' });

/** A long validity period, so that no test of the recording fails by its age. */
const validityFlags = ['root', 'targets', 'snapshot', 'timestamp'].flatMap((role) => [
  `--${role}-life`,
  '3650d',
]);

function publish(text) {
  writeFileSync(at('source', 'block.rpz'), text);
  writ('publish', at('source'), ...['--repository', repository, '--keys', keys, '--bundle', 'dns-edge']);
}

/** @returns the fleet server after it answers, and its address */
async function serveFleet() {
  const serve = ['fleet', 'serve', '--store', at('fleet'), '--listen', '127.0.0.1:0'];
  const server = spawn(process.execPath, [program, ...serve], { stdio: ['ignore', 'pipe', 'ignore'] });
  let text = '';
  for await (const part of server.stdout) {
    text += part;
    const url = /LISTENING (\S+)\n/.exec(text)?.[1];
    if (url !== undefined) return { server, url };
  }
  throw new Error('the fleet server ended');
}

function tokenForHosts() {
  const create = ['fleet', 'token', 'create', '--for', 'hosts', '--store', at('fleet'), '--json'];
  return JSON.parse(execFileSync(process.execPath, [program, ...create], { encoding: 'utf8' })).token;
}

const { server, url } = await serveFleet();
try {
  mkdirSync(at('source'));
  writeFileSync(at('token'), tokenForHosts());
  writ('init', '--repository', repository, '--keys', keys, '--no-passphrase', ...validityFlags);
  const settings = { repository: `file://${repository}`, root: join(repository, 'metadata', '1.root.json') };
  const places = { state: at('state'), run: at('run'), sandbox: 'off', bundles: [{ name: 'dns-edge' }] };
  const about = { host: { id: 'recorded' }, fleet: { url, tokenFile: at('token') } };
  writeFileSync(config, JSON.stringify({ ...settings, ...places, ...about }));
  publish('version 1\n');
  writ('pull', '--config', config);
  // For tests of a replay: the host has accepted a later one.
  copyFileSync(join(repository, 'metadata', 'timestamp.json'), at('older-timestamp.json'));
  publish('version 2\n');
  writ('pull', '--config', config);
  writ('rollback', '--config', config);
  server.kill('SIGTERM');
  await once(server, 'exit');
  const ownership = ['--owner=0', '--group=0', '--numeric-owner', '--sort=name'];
  const parts = ['repository', 'keys', 'state', 'run', 'fleet', 'older-timestamp.json'];
  execFileSync('tar', ['-czf', out, ...ownership, '-C', place, ...parts]);
  process.stdout.write(`${out}\n`);
} finally {
  server.kill('SIGKILL');
  rmSync(place, { recursive: true, force: true });
}
