// Each image runs as an engine starts it, with its own user, command and environment. Tests its user, its health check, and its
// end at TERM, and that the image of the agent activates the policy of the server's image.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { freePort } from '../../dist/test/kit/programs/free-port.js';

const { images, work } = JSON.parse(readFileSync(process.env.WRIT_IMAGES, 'utf8'));
const writ = join(import.meta.dirname, '../../dist/writ/main.js');
const ports = { server: await freePort(), fleet: await freePort() };
const imageOf = (name) => images.find((one) => one.name === name);
const started = [];
after(() => {
  for (const child of started) child.kill('SIGKILL');
});

/**
 * Only volumes are writable, as with --read-only; the agent also has its sockets in /run/writ.
 * Each shell ends with `exec`, so that signals and the exit code are those of the program itself.
 */
function argvOf({ name, config, mounted }, command, env) {
  const written = Object.keys(config.Volumes ?? {}).concat(name === 'agent' ? ['/run/writ'] : []);
  const inside = [
    'mount --bind "$0" "$0"',
    ...written.map((path) => `mount --bind "$0${path}" "$0${path}"`),
    'mount -o remount,bind,ro "$0"',
    ...['/proc', '/dev'].map((path) => `mount --bind ${path} "$0${path}"`),
    'exec chroot "$@"',
  ];
  const all = [...config.Env, ...Object.entries(env).map(([key, value]) => `${key}=${value}`)];
  const user = `--userspec=${config.User}`;
  const chroot = [mounted, user, mounted, 'env', '-i', ...all, ...command];
  return ['--mount', 'sh', '-ec', inside.join('\n'), ...chroot];
}

const ask = (name, command, env = {}) =>
  spawnSync('unshare', argvOf(imageOf(name), command, env), { encoding: 'utf8', timeout: 120_000 });
const health = (name, env) => ask(name, imageOf(name).config.Healthcheck.Test.slice(1), env);

function start(name, args = imageOf(name).config.Cmd, env = {}) {
  const command = [...imageOf(name).config.Entrypoint, ...args];
  const child = spawn('unshare', argvOf(imageOf(name), command, env), { stdio: 'ignore' });
  started.push(child);
  return child;
}

async function until(isSo, what) {
  for (let tries = 0; tries < 240; tries += 1) {
    if (isSo()) return;
    await setTimeout(500);
  }
  assert.fail(`two minutes, and not yet: ${what}`);
}

/** An engine waits ten seconds, then kills. */
async function endsAtTerm(child) {
  const exited = new Promise((resolve) => child.once('exit', (code, signal) => resolve({ code, signal })));
  child.kill('SIGTERM');
  assert.deepEqual(await Promise.race([exited, setTimeout(10_000, 'still there')]), {
    code: 0,
    signal: null,
  });
}

/** Copies files that an engine would mount into the mounted image, with the owner of a volume. */
function give(name, place, from) {
  const to = join(imageOf(name).mounted, place);
  cpSync(from, to, { recursive: true });
  spawnSync('chmod', ['-R', 'a+rX', to]);
}

function publish() {
  const [source, repository, keys] = ['source', 'repository', 'keys'].map((one) => join(work, one));
  mkdirSync(source);
  writeFileSync(join(source, 'rules.txt'), 'one\n');
  const where = ['--repository', repository, '--keys', keys];
  const what = ['--bundle', 'access', '--revision', 'first'];
  for (const args of [
    ['init', ...where, '--no-passphrase'],
    ['publish', source, ...where, ...what],
  ])
    assert.equal(spawnSync(process.execPath, [writ, ...args], { stdio: 'inherit' }).status, 0);
  give('server', 'srv/writ', repository);
  const etc = join(imageOf('agent').mounted, 'etc/writ');
  mkdirSync(etc);
  cpSync(join(repository, 'metadata/1.root.json'), join(etc, 'root.json'));
  const url = `http://127.0.0.1:${ports.server}/`;
  writeFileSync(
    join(etc, 'agent.yaml'),
    `repository: ${url}\nroot: /etc/writ/root.json\nbundles:\n  - name: access\n`,
  );
  for (const path of [etc, join(etc, 'agent.yaml'), join(etc, 'root.json')])
    chmodSync(path, path === etc ? 0o755 : 0o644);
}

/** @returns the status source of `writ health`: the running agent, or only the disk */
const seenBy = () => JSON.parse(ask('agent', ['writ', 'health', '--json']).stdout).source;

describe('every image', () => {
  for (const { name } of images)
    it(`runs as a user that is not root, and has Writ: ${name}`, () => {
      assert.equal(ask(name, ['id', '-u']).stdout, '10001\n');
      assert.notEqual(ask(name, ['touch', '/tmp/one']).status, 0);
      assert.match(ask(name, ['writ', '--version']).stdout, /^\d+\.\d+\.\d+\n$/);
    });

  it('has only what it needs: bubblewrap for the agent, fastify for the fleet', () => {
    const having = (place) =>
      images.filter(({ mounted }) => existsSync(join(mounted, place))).map(({ name }) => name);
    assert.deepEqual(having('usr/bin/bwrap'), ['agent']);
    assert.equal(ask('agent', ['bwrap', '--version']).status, 0);
    assert.deepEqual(having('opt/writ/node_modules/fastify'), ['fleet']);
  });
});

describe('the images of server and agent', () => {
  const env = { WRIT_HEALTH_URL: `http://127.0.0.1:${ports.server}/healthz` };
  let server;
  before(() => publish());

  it('serve a repository, and answer the health check', async () => {
    assert.equal(health('server', env).status, 1);
    const listen = ['--listen', `127.0.0.1:${ports.server}`];
    server = start('server', ['serve', '--repository', '/srv/writ', ...listen]);
    await until(() => health('server', env).status === 0, 'a healthy server');
  });

  it('activate the policy of that repository, and are healthy', async () => {
    assert.notEqual(health('agent').status, 0);
    const pulled = ask('agent', ['writ', 'pull', '--json']);
    assert.equal(pulled.status, 0, `${pulled.stdout}${pulled.stderr}`);
    const place = 'var/lib/writ/policy/current/access/rules.txt';
    assert.equal(readFileSync(join(imageOf('agent').mounted, place), 'utf8'), 'one\n');
    // A host with verified policy is healthy, with an agent or without one.
    const agent = start('agent');
    await until(() => seenBy() === 'agent', 'an agent that answers');
    assert.equal(health('agent').status, 0);
    await endsAtTerm(agent);
  });

  it('end the server at TERM', () => endsAtTerm(server));
});

describe('the image of the fleet', () => {
  it('answers its health check, and ends at TERM', async () => {
    const env = {
      WRIT_FLEET_SERVE_LISTEN: `127.0.0.1:${ports.fleet}`,
      WRIT_HEALTH_URL: `http://127.0.0.1:${ports.fleet}/healthz`,
    };
    assert.equal(health('fleet', env).status, 1);
    const fleet = start('fleet', undefined, env);
    await until(() => health('fleet', env).status === 0, 'a healthy fleet server');
    const token = ['writ', 'fleet', 'token', 'create', '--for', 'hosts'];
    assert.match(ask('fleet', token, env).stdout, /^writ_host_/m);
    await endsAtTerm(fleet);
  });
});
