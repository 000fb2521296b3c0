// Installations without apt, on booted machines with the installed packages of this one: the recipe of docs/systemd.md from
// the npm tarball, and the Ansible role with the package, a fleet, and the tarball. npm uses its registry.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { blocksOf, sectionOf } from '../../dist/test/kit/pages/page-commands.js';
import { bootThis } from './booted-root.js';

const root = join(import.meta.dirname, '../..');
const built = process.env.WRIT_PACKAGES;
const files = readdirSync(built).filter((name) => /\.(?:deb|tgz)$/.test(name));
const [deb] = files.filter((name) => name.startsWith('writ_'));
const [tarball] = files.filter((name) => name.endsWith('.tgz'));
const folder = mkdtempSync('/var/tmp/writ-ways-');
const machines = [];
after(async () => {
  for (const machine of machines) await machine.cutPower();
  rmSync(folder, { recursive: true, force: true });
});

function publish(place) {
  const where = ['--repository', join(place, 'repo'), '--keys', join(place, 'keys')];
  const source = join(place, 'source');
  mkdirSync(source);
  writeFileSync(join(source, 'rules.txt'), 'one\n');
  for (const args of [
    ['init', ...where, '--no-passphrase'],
    ['publish', source, ...where, '--bundle', 'access', '--revision', 'first'],
  ])
    execFileSync(process.execPath, [join(root, 'dist/writ/main.js'), ...args]);
}

/** The repository is in /srv/repo, because the unit of the agent has no access to home directories. */
async function machineOf(name, networkOf) {
  const given = join(folder, name, 'given');
  mkdirSync(given, { recursive: true });
  for (const file of files) cpSync(join(built, file), join(given, file));
  cpSync(join(root, 'packaging/ansible/roles'), join(given, 'roles'), { recursive: true });
  publish(given);
  const machine = await bootThis({ folder: join(folder, name), name, networkOf });
  machines.push(machine);
  await machine.sh('cp -r /given/. /root && mv repo /srv && cp /srv/repo/metadata/1.root.json root.json');
  return { ...machine, write: (file, text) => writeFileSync(join(given, file), text) };
}

const config = { repository: 'file:///srv/repo', bundles: [{ name: 'access' }] };
const policy = '/var/lib/writ/policy/current/access/rules.txt';

async function isHost(machine) {
  assert.equal(await machine.sh(`cat ${policy}`), 'one\n');
  assert.equal(JSON.parse(await machine.sh('writ status --json')).outcome, 'active');
  assert.equal(await machine.show('writ-agent', 'ActiveState'), 'active');
  assert.equal(await machine.show('writ-agent', 'UnitFileState'), 'enabled');
}

async function until(ask, what) {
  for (let tries = 0; tries < 120; tries += 1) {
    if (await ask()) return;
    await setTimeout(500);
  }
  assert.fail(`a minute, and not yet: ${what}`);
}

describe('the recipe for systemd without packages', () => {
  it('makes a host, and upgrades it', async () => {
    const page = readFileSync(join(root, 'docs/systemd.md'), 'utf8');
    const [recipe] = blocksOf(sectionOf(page, 'Without packages'));
    const machine = await machineOf('recipe', process.pid);
    machine.write('agent.yaml', JSON.stringify(config));
    await machine.sh(`set -e\n${recipe}`);
    await machine.sh('install -m 0644 /given/agent.yaml root.json /etc/writ/');
    await machine.sh('systemctl enable --now writ-agent');
    await isHost(machine);
    await machine.sh(`set -e\n${recipe}systemctl restart writ-agent`);
    await isHost(machine);
    await machine.cutPower();
  });
});

describe('the role of Ansible, on a booted machine', () => {
  /** @returns the names of the tasks that changed something */
  async function play(machine, given) {
    const role = { hosts: 'localhost', gather_facts: false, roles: ['writ'] };
    const play = { ...role, vars: { writ_root: '/root/root.json', writ_config: config, ...given } };
    machine.write('play.json', JSON.stringify([play]));
    const output = await machine.sh(
      'ANSIBLE_ROLES_PATH=/root/roles ANSIBLE_NOCOLOR=1 ansible-playbook -i localhost, -c local /given/play.json',
    );
    return [...output.matchAll(/^(?:TASK|RUNNING HANDLER) \[writ : (.*)\] \*+\n(?:.*\n)*?(?=\n)/gm)]
      .filter(([block]) => /^changed: \[localhost\]/m.test(block))
      .map(([, name]) => name);
  }

  const vars = { writ_deb: `/root/${deb}` };
  let machine;

  it('installs the package and starts the agent', async () => {
    machine = await machineOf('ansible');
    const first = await play(machine, vars);
    for (const name of ['Install the package', 'Start the agent'])
      assert.ok(first.includes(name), String(first));
    await isHost(machine);
  });

  it('keeps the token until the host has enrolled, and changes nothing before', async () => {
    await machine.sh('apt-get install -y /root/writ-fleet_*.deb');
    const asFleet = 'runuser -u writ-fleet -- writ fleet';
    const store = '--store /var/lib/writ-fleet';
    const url = 'http://127.0.0.1:8443';
    const tokenFile = '/etc/writ/fleet.token';
    await machine.sh(`echo WRIT_FLEET_SERVE_LISTEN=127.0.0.1:8443 >> /etc/writ/fleet.env
      systemctl start writ-fleet`);
    const token = /^writ_\S+$/m.exec(await machine.sh(`${asFleet} token create --for hosts ${store}`))[0];
    await machine.sh('systemctl stop writ-fleet');
    const withFleet = {
      ...vars,
      writ_fleet_token: token,
      writ_config: { ...config, fleet: { url, tokenFile } },
    };
    assert.ok((await play(machine, withFleet)).includes('Reload the agent'));
    await until(
      async () => (await machine.type('test -e /var/lib/writ/fleet/key.json')).exitCode === 0,
      'a key',
    );
    assert.deepEqual(await play(machine, withFleet), []);
    assert.equal(await machine.sh(`cat ${tokenFile}`), `${token}\n`);
    await machine.sh('systemctl start writ-fleet && systemctl restart writ-agent');
    const reports = async () =>
      JSON.parse(await machine.sh('writ status --json')).fleet.state === 'reporting';
    await until(reports, 'a report');
    assert.deepEqual(await play(machine, withFleet), ['Remove the token of a host that has enrolled']);
    await machine.cutPower();
  });

  it('installs the tarball with its units, and changes nothing the second time', async () => {
    machine = await machineOf('tarball', process.pid);
    const byNpm = { writ_tarball: `/root/${tarball}` };
    const first = await play(machine, byNpm);
    for (const name of ['Install the tarball', 'Start the agent'])
      assert.ok(first.includes(name), String(first));
    await isHost(machine);
    assert.deepEqual(await play(machine, byNpm), []);
    await machine.cutPower();
  });
});
