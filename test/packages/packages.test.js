// The Debian packages in a clean root: installed, upgraded and downgraded under a running agent, removed, and purged with and
// without the state. All suites use one root, in this order.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  appendFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';
import { freePort } from '../../dist/test/kit/programs/free-port.js';
import { makeCleanRoot } from './clean-root.js';

const built = process.env.WRIT_PACKAGES;
const folder = mkdtempSync('/var/tmp/writ-root-');
const later = '99.0.0';
let root;
const debs = {};

before(() => {
  root = makeCleanRoot(join(folder, 'root'));
  for (const name of readdirSync(built).filter((one) => one.endsWith('.deb')))
    debs[name.split('_')[0]] = root.bring(join(built, name));
});
after(() => rmSync(folder, { recursive: true, force: true }));

/** @returns a package with the same content as a later version, made without the minutes that xz takes */
function asLater(name) {
  const tree = join(folder, `later-${name}`);
  const tool = (...args) => assert.equal(spawnSync('dpkg-deb', args).status, 0, args.join(' '));
  tool('--raw-extract', join(folder, 'root', debs[name]), tree);
  const change = (file) => {
    const path = join(tree, 'DEBIAN', file);
    const text = readFileSync(path, 'utf8').replace(/^Version: .*/m, `Version: ${later}`);
    writeFileSync(path, text.replace(/\(= [^)]+\)/, `(= ${later})`));
  };
  change('control');
  tool('--root-owner-group', '-Znone', '--build', tree, join(folder, `${name}_later.deb`));
  rmSync(tree, { recursive: true });
  return root.bring(join(folder, `${name}_later.deb`));
}

async function until(isSo, what) {
  for (let tries = 0; tries < 240; tries += 1) {
    if (await isSo()) return;
    await setTimeout(500);
  }
  assert.fail(`two minutes, and not yet: ${what}`);
}

/** The process of the agent, by its pid outside of the namespace of the root. */
async function ended(process) {
  if (process.exitCode === null && process.signalCode === null)
    await new Promise((resolve) => process.once('exit', resolve));
}

const policy = 'var/lib/writ/policy/current/access/rules.txt';
const status = () => root.run('writ status --json');

describe('the packages of a host', () => {
  let agent;
  after(() => agent?.kill('SIGKILL'));

  it('are installed with nothing enabled, and with a configuration that keeps the agent down', () => {
    const output = root.ok(`apt-get install -y ${debs.writ}`);
    assert.match(output, /^writ: next: edit \/etc\/writ\/agent\.yaml/m);
    assert.match(root.ok('writ --version'), /^\d+\.\d+\.\d+\n$/);
    assert.ok(existsSync(root.inside('lib/systemd/system/writ-agent.service')));
    assert.equal(root.ok('find /etc/systemd -name "writ*"'), '');
    assert.match(root.ok('getent passwd writ-check'), /^writ-check:/);
    const refused = root.run('writ agent');
    assert.equal(refused.status, 2, refused.text);
    assert.match(refused.stderr, /CONFIG_INVALID/);
    assert.match(root.ok('dpkg -V writ; true'), /^$/);
  });

  it('name the page of an error, which they contain', () => {
    const { stderr } = root.run('writ pull --config /etc/writ/missing.yaml');
    const [, page] = /^docs: writ help [A-Z_]+, or file:\/\/(\/usr\/share\/doc\/writ\/html\/\S+)$/m.exec(
      stderr,
    );
    assert.match(readFileSync(root.inside(page.slice(1)), 'utf8'), /<h1/);
  });

  it('contain documents with links only to their own files', () => {
    const folder = root.inside('usr/share/doc/writ');
    const documents = readdirSync(folder, { recursive: true })
      .filter((path) => /\.md(\.gz)?$/.test(path))
      .map((path) => join(folder, path));
    assert.ok(documents.length > 20, documents.join());
    for (const path of documents) {
      const bytes = readFileSync(path);
      const text = (path.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString();
      for (const [, link] of text.matchAll(/\]\(([^)\s#]+)[^)\s]*\)/g))
        if (!/^[a-z]+:/.test(link)) assert.ok(existsSync(join(dirname(path), link)), `${path}: ${link}`);
    }
  });

  it('name the missing package of a command', () => {
    const refused = root.run('writ fleet serve --store /tmp/store');
    assert.equal(refused.status, 2, refused.text);
    assert.match(refused.stderr, /PACKAGE_MISSING.*writ-fleet/);
  });

  it('contain manual pages and completion for three shells', () => {
    const share = join(import.meta.dirname, '../../dist/share');
    const made = readdirSync(share, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => `${entry.parentPath.slice(share.length)}/${entry.name}`.replace(/\.1$/, '.1.gz'));
    for (const folder of ['bash-completion', 'zsh', 'fish', 'man'])
      assert.ok(
        made.some((path) => path.startsWith(`/${folder}/`)),
        folder,
      );
    for (const path of made) assert.ok(existsSync(root.inside(`usr/share${path}`)), path);
    const asked = '. /usr/share/bash-completion/completions/writ && complete -p writ';
    assert.match(root.ok(`bash -c '${asked}'`), / writ\n$/);
  });

  it('lead from one edited file and a start of the agent to a verified policy', async () => {
    root.ok(`mkdir -p /root/source && cd /root && echo one > source/rules.txt
      writ init --repository /srv/repo --keys keys --no-passphrase
      writ publish source --repository /srv/repo --keys keys --bundle access --revision first
      cp /srv/repo/metadata/1.root.json /etc/writ/root.json`);
    const edited = 'repository: file:///srv/repo\nroot: /etc/writ/root.json\nbundles:\n  - name: access\n';
    appendFileSync(root.inside('etc/writ/agent.yaml'), edited);
    agent = root.start('writ agent');
    await until(() => existsSync(root.inside(policy)), 'a policy');
    assert.equal(readFileSync(root.inside(policy), 'utf8'), 'one\n');
    await until(() => status().status === 0, 'an agent that answers');
    root.ok('writ verify');
  });

  it('are upgraded under a running agent, which continues, and the next one reads its state', async () => {
    const before = JSON.parse(status().stdout);
    const output = root.ok(`dpkg -i ${asLater('writ')}`);
    assert.doesNotMatch(output, /downgrade|next:/);
    assert.equal(agent.exitCode, null);
    assert.equal(status().status, 0);
    assert.match(readFileSync(root.inside('etc/writ/agent.yaml'), 'utf8'), /^repository: file/m);
    agent.kill('SIGKILL');
    await ended(agent);
    agent = root.start('writ agent');
    await until(() => status().status === 0, 'the next agent');
    assert.deepEqual(JSON.parse(status().stdout).bundles?.[0]?.serial, before.bundles?.[0]?.serial);
    assert.equal(readFileSync(root.inside(policy), 'utf8'), 'one\n');
  });

  it('warn of a downgrade, and do it', () => {
    const output = root.ok(`dpkg -i ${debs.writ}`);
    assert.match(output, new RegExp(`downgrade from ${later.replaceAll('.', '\\.')}`));
    root.ok('writ verify');
  });

  it('serve a repository without the package writ-server, which adds a unit and a user', async () => {
    const listen = `127.0.0.1:${await freePort()}`;
    const server = root.start(`writ serve --repository /srv/repo --listen ${listen}`);
    const isServed = () =>
      fetch(`http://${listen}/metadata/1.root.json`).then(
        ({ ok }) => ok,
        () => false,
      );
    await until(isServed, 'a server that answers');
    server.kill('SIGKILL');
    await ended(server);
  });

  it('keep the state when they are removed', async () => {
    agent.kill('SIGKILL');
    await ended(agent);
    root.ok('mkdir -p /var/lib/writ/fleet && echo secret > /var/lib/writ/fleet/key.json');
    root.ok(
      'systemctl enable writ-agent && echo secret > /etc/writ/fleet.token && echo own > /etc/writ/own.pem',
    );
    root.ok('dpkg --remove writ');
    assert.equal(existsSync(root.inside('usr/lib/writ')), false);
    assert.ok(existsSync(root.inside(policy)));
    assert.ok(existsSync(root.inside('var/lib/writ/fleet/key.json')));
    assert.ok(existsSync(root.inside('etc/writ/agent.yaml')));
  });

  it('keep the state when they are purged and list the remaining files, but keep no secret and no enabled unit', () => {
    const output = root.ok('dpkg --purge writ');
    assert.match(output, /stays in \/var\/lib\/writ;/);
    assert.match(output, /left in \/etc\/writ: own\.pem$/m);
    assert.equal(root.ok('rm /etc/writ/own.pem && rmdir /etc/writ && find /etc -name "*writ*"'), '');
    assert.ok(existsSync(root.inside(policy)));
    assert.equal(existsSync(root.inside('var/lib/writ/fleet')), false);
    assert.equal(existsSync(root.inside('etc/writ/agent.yaml')), false);
  });

  it('leave nothing when debconf requests it', () => {
    root.ok('echo "writ writ/keep-state boolean false" | debconf-set-selections');
    root.ok(`dpkg -i ${debs.writ} && mkdir -p /var/lib/writ/fleet`);
    const { status, stdout } = root.run('systemctl is-enabled writ-agent');
    assert.deepEqual([status, stdout], [1, 'disabled\n']);
    root.ok('dpkg --purge writ');
    const ours = '-not -path "/srv/repo*" -not -path "/packages/*" -not -path "/proc/*"';
    assert.equal(root.ok(`find / -path "*writ*" ${ours}`), '');
  });
});

describe('the packages of servers', () => {
  const units = 'lib/systemd/system';
  let server;
  after(() => server?.kill('SIGKILL'));

  it('come with a user and directories of their own, for the exact version of the program', () => {
    root.ok(`dpkg -i ${debs.writ} ${debs['writ-server']} ${debs['writ-fleet']}`);
    assert.equal(root.ok('stat -c "%U %a" /srv/writ/repo /var/lib/writ-fleet'), 'writ 755\nwrit-fleet 700\n');
    const refused = root.run(`dpkg -i ${asLater('writ-fleet')}`);
    assert.notEqual(refused.status, 0);
    assert.match(refused.stderr, /depends on writ \(= /);
    root.ok(`dpkg -i ${debs['writ-fleet']}`);
  });

  it('have units without a finding of systemd, and with existing documents', () => {
    const names = readdirSync(root.inside(units)).filter((name) => name.startsWith('writ-'));
    assert.ok(names.length >= 5, names.join());
    // A bare Debian has no man, so the pages are checked below.
    assert.equal(root.ok(`cd /${units} && systemd-analyze verify --man=no ${names.join(' ')}`), '');
    const text = names.map((name) => readFileSync(root.inside(join(units, name)), 'utf8')).join('\n');
    const documents = [...text.matchAll(/^Documentation=(.*)$/gm)].flatMap(([, all]) => all.split(' '));
    assert.ok(documents.length >= 5, documents.join());
    for (const one of documents) {
      const page = one.replace(/^man:(\S+)\((\d)\)$/, 'file:///usr/share/man/man$2/$1.$2.gz');
      assert.ok(existsSync(root.inside(page.replace(/^file:\/\//, ''))), one);
    }
  });

  for (const [command, file] of [
    ['serve --repository /srv/repo', 'server.env'],
    ['fleet serve', 'fleet.env'],
  ])
    it(`name the new variable for an older one in ${file}, and do not start`, () => {
      appendFileSync(root.inside(`etc/writ/${file}`), 'WRIT_LISTEN=127.0.0.1:0\n');
      const refused = root.run(`set -a; . /etc/writ/${file}; writ ${command}`);
      // 2 is in RestartPreventExitStatus= of the units, so the message is at the end of the journal.
      assert.equal(refused.status, 2, refused.text);
      const name = `WRIT_${command.split(' --')[0].replace(' ', '_').toUpperCase()}_LISTEN`;
      assert.match(refused.stderr, new RegExp(`WRIT_LISTEN is set.*Set ${name}`, 's'));
    });

  it('serve a fleet', async () => {
    server = root.start('writ fleet serve --store /root/store --listen 127.0.0.1:0');
    await until(() => existsSync(root.inside('root/store')), 'a store');
    assert.match(
      root.ok('writ fleet token create --for people --role view --store /root/store'),
      /writ_people_/,
    );
    server.kill('SIGKILL');
    await ended(server);
  });

  it('name the path of the remaining store when they are purged', () => {
    root.ok('touch /var/lib/writ-fleet/kept');
    const output = root.ok('dpkg --purge writ-server writ-fleet');
    assert.match(output, /stays in \/var\/lib\/writ-fleet;/);
    assert.ok(existsSync(root.inside('var/lib/writ-fleet/kept')));
  });
});
