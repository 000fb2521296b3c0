// The steps of the README and docs/install.md on booted machines: a bare Debian, the packages as apt installs them, the commands
// of the page, units that systemd starts. There are two machines: one serves a repository and a fleet and is a host itself,
// and the five commands make the other one a host of that fleet.
import assert from 'node:assert/strict';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { blocksOf, sectionOf } from '../../dist/test/kit/pages/page-commands.js';
import { bootRoot } from './booted-root.js';
import { makeCleanRoot } from './clean-root.js';

const built = process.env.WRIT_PACKAGES;
const [page, fleetPage, serverPage] = ['install.md', 'fleet.md', 'server.md'].map((name) =>
  readFileSync(join(import.meta.dirname, '../../docs', name), 'utf8'),
);
const repository = 'http://127.0.0.1:8080/';
const fleetUrl = 'http://127.0.0.1:8443';
const folder = mkdtempSync('/var/tmp/writ-boot-');
/** The read-only root: each machine writes to its own disk over it. */
const lower = process.env.WRIT_CLEAN_ROOT ?? join(folder, 'clean');
const machines = [];

before(() => {
  if (!existsSync(lower)) makeCleanRoot(lower);
});
after(async () => {
  for (const machine of machines) await machine.cutPower();
  rmSync(folder, { recursive: true, force: true });
});

const placeOf = (name) => join(folder, name);

async function boot(name, networkOf) {
  const machine = await bootRoot({ ...{ lower, folder: placeOf(name), name }, networkOf });
  machines.push(machine);
  return machine;
}

/** Boots a bare Debian: apt installs the dependencies of the packages, from the files that it fetched and verified before. */
async function bare(name, networkOf) {
  const root = join(placeOf(name), 'upper/root');
  mkdirSync(root, { recursive: true });
  for (const deb of readdirSync(built).filter((one) => one.endsWith('.deb')))
    cpSync(join(built, deb), join(root, deb));
  const machine = await boot(name, networkOf);
  await machine.sh('dpkg --purge bubblewrap libatomic1 rsync');
  // The test cannot confirm a question of apt, and only required packages were fetched before, not recommended ones.
  const answers = 'APT::Get::Assume-Yes "true"; APT::Install-Recommends "false";';
  await machine.sh(`echo '${answers}' > /etc/apt/apt.conf.d/answers`);
  return machine;
}

async function until(ask, what) {
  for (let tries = 0; tries < 120; tries += 1) {
    if (await ask()) return;
    await setTimeout(500);
  }
  assert.fail(`a minute, and not yet: ${what}`);
}

const policy = '/var/lib/writ/policy/current/access';
const statusOf = async (machine) => JSON.parse(await machine.sh('writ status --json'));
const timeOf = async (machine, unit) => Number(await machine.show(unit, 'ActiveEnterTimestampMonotonic'));

/** @returns the digest of each file of the tree */
const treeOf = (machine, path) => machine.sh(`cd ${path}/ && find . -type f | sort | xargs sha256sum`);

async function stopsInTime(machine, unit) {
  const began = Date.now();
  await machine.sh(`systemctl stop ${unit}`);
  assert.ok(Date.now() - began < 15_000, `${unit} stopped after ${Date.now() - began} ms`);
  assert.equal(await machine.show(unit, 'Result'), 'success');
}

let office;
const [setUp, publishing] = blocksOf(sectionOf(serverPage, 'One machine publishes and serves'));
/** The passphrase that `init` asks for. */
const passphrase = 'export WRIT_PASSPHRASE=of-this-hour';
const publish = (revision) =>
  office.sh(`set -e; ${passphrase}; cd /srv/office
    ${publishing.replace('--bundle access', `$& --revision ${revision}`)}`);
const source = '/srv/office/policy';

describe('a bare Debian', () => {
  it('becomes a repository server and a fleet server by the packages, each under a user of its own', async () => {
    office = await bare('office');
    await office.sh('apt install ./writ_*.deb ./writ-server_*.deb ./writ-fleet_*.deb');
    const enabled = await office.sh('systemctl is-enabled writ-agent writ-server writ-fleet; true');
    assert.equal(enabled, 'disabled\n'.repeat(3));
    await office.sh(`set -e; ${passphrase}; ${setUp}`);
    await office.sh(`mkdir -p ${source}/deep && echo one > ${source}/rules.txt
      head -c 300000 /dev/urandom > ${source}/deep/data`);
    await publish('first');
    assert.equal(await office.sh('find /srv/writ /etc/writ/online ! -user writ'), '');
    await office.sh(`sed -i 's/^# \\(WRIT_FLEET_SERVE_LISTEN=\\).*/\\1127.0.0.1:8443/' /etc/writ/fleet.env`);
    await office.sh('systemctl enable --now writ-fleet');
    const next =
      'runuser -u writ-fleet -- writ fleet token create -q --for hosts --store /var/lib/writ-fleet';
    await office.sh(`journalctl -u writ-fleet | grep -q -- '${next}'`);
    await office.sh('systemctl reload writ-server writ-fleet');
    for (const [unit, user] of [
      ['writ-server', 'writ'],
      ['writ-fleet', 'writ-fleet'],
    ]) {
      const pid = await office.show(unit, 'MainPID');
      assert.equal(await office.sh(`stat -c %U /proc/${pid}`), `${user}\n`);
      // The signal arrives, and ends nothing.
      await office.sh(`systemctl reload ${unit}`);
      assert.equal(await office.show(unit, 'MainPID'), pid);
    }
  });

  it('becomes a host with verified policy after one edited file and one start', async () => {
    await office.sh('cp /srv/office/repo/metadata/1.root.json /etc/writ/root.json');
    const marks = `s|^# repository:.*|repository: ${repository}|; s/^# \\(bundles:\\|  - name: access\\)/\\1/`;
    await office.sh(`sed -i '${marks}' /etc/writ/agent.yaml`);
    await office.sh('systemctl enable --now writ-agent');
    assert.equal(await treeOf(office, policy), await treeOf(office, source));
    await office.sh('writ verify');
    const { outcome, health, agent, sandbox, bundles } = await statusOf(office);
    assert.deepEqual([outcome, health, agent, sandbox.state], ['active', 'ok', 'run', 'on']);
    assert.deepEqual([bundles[0].serial, bundles[0].revision], [1, 'first']);
    assert.equal(await office.show('writ-agent', 'ActiveState'), 'active');
  });

  it('activates the second release by a pull, and its agent stops at once', async () => {
    await office.sh(`echo two > ${source}/rules.txt && rm -r ${source}/deep`);
    await publish('second');
    await office.sh('writ pull');
    assert.equal(await treeOf(office, policy), await treeOf(office, source));
    assert.equal((await statusOf(office)).bundles[0].revision, 'second');
    await stopsInTime(office, 'writ-agent');
    assert.equal(await treeOf(office, policy), await treeOf(office, source));
  });
});

describe('a machine that publishes and serves', () => {
  const refresh = 'writ refresh --repository /srv/writ/repo --keys /etc/writ/online';
  const files = () => office.sh('find /srv/writ -type f -printf "%P %U %m %T@\\n" | sort');

  it('refuses root in the directories of the server, by name, and writes nothing', async () => {
    const before = await files();
    const { exitCode, stderr } = await office.type(refresh);
    assert.equal(exitCode, 2);
    assert.match(stderr, /REPOSITORY_OWNER.*belongs to writ.*runuser -u writ -- writ/s);
    assert.equal(await files(), before);
  });

  it('never replaces the timestamp of the server by an older one', async () => {
    const version = async () =>
      JSON.parse(await office.sh('cat /srv/writ/repo/metadata/timestamp.json')).signed.version;
    const before = await version();
    await office.sh(`runuser -u writ -- ${refresh}`);
    const signed = await version();
    assert.ok(signed > before);
    await office.sh(`echo three > ${source}/rules.txt`);
    await publish('third');
    assert.ok((await version()) > signed);
    assert.equal(await office.sh('find /srv/writ ! -user writ'), '');
  });
});

describe('the five commands of docs/install.md', () => {
  const section = sectionOf(page, 'From nothing to a host of a fleet');
  const commands = blocksOf(section, '')[0].trimEnd().split('\n');
  const [smallest] = blocksOf(page, 'yaml');
  const [, fleetLine] = /`(fleet: \{.*?\})`/.exec(page);
  let host;

  /** @returns the configuration of the page, with the servers of this test */
  function agentYaml() {
    return `${smallest}${fleetLine}\n`
      .replace('https://policy.example.net/', repository)
      .replace('https://fleet.example.net:8443', fleetUrl);
  }
  const asFleet = (line) => office.sh(`runuser -u writ-fleet -- ${line} --store /var/lib/writ-fleet`);

  it('begin with three files, on a machine without other files of Writ', async () => {
    host = await bare('edge-1', office.pid1);
    const [, create] = blocksOf(fleetPage, '')[0].split('\n');
    const token = await office.sh(`umask 077; runuser -u writ-fleet -- ${create} && cat fleet.token`);
    assert.equal(await office.sh('stat -c "%a %U" fleet.token'), '600 root\n');
    const given = {
      'agent.yaml': agentYaml(),
      'root.json': await office.sh('cat /srv/office/repo/metadata/1.root.json'),
      'fleet.token': token,
    };
    for (const [name, text] of Object.entries(given))
      writeFileSync(join(placeOf('edge-1'), 'upper/root', name), text);
    assert.equal(commands.length, 5);
  });

  for (const [at, line] of commands.entries())
    it(`${at + 1}: ${line}`, async () => {
      await host.sh(line);
    });

  it('end with a host that the fleet counts, and with no token on it', async () => {
    assert.equal(await host.sh('ls /etc/writ'), 'agent.yaml\nroot.json\n');
    assert.equal(await treeOf(host, policy), await treeOf(office, source));
    assert.match(await asFleet('writ fleet status'), /1 host\b/);
    const { hosts } = JSON.parse(await asFleet('writ fleet status --json'));
    assert.equal(hosts.accepted, 1);
    const { fleet } = await statusOf(host);
    assert.equal(fleet.state, 'reporting');
  });

  it('add the host to the fleet again after it was retired, with the commands of the hint', async () => {
    const code = async () => (await statusOf(host)).fleet.problem?.code;
    assert.match(await asFleet('writ fleet host retire edge-1'), /writ help FLEET_KEY_RETIRED/);
    // A host reports a change at once, and sends a keepalive only after minutes.
    await office.sh(`echo four > ${source}/rules.txt`);
    await publish('fourth');
    await host.sh('writ pull');
    await until(async () => (await code()) === 'FLEET_KEY_RETIRED', 'a refusal of the key');
    const { hint } = (await statusOf(host)).fleet.problem;
    await host.sh('cp /root/fleet.token /etc/writ/');
    for (const [, command] of hint.matchAll(/`((?:systemctl|rm) [^`]*)`/g)) await host.sh(command);
    await until(async () => (await statusOf(host)).fleet.state === 'reporting', 'a report under a new key');
    await host.sh('rm /etc/writ/fleet.token');
  });

  it('last: after a boot the policy exists, the units start in order, and the host reports again', async () => {
    await host.powerOff();
    host = await boot('edge-1', office.pid1);
    await host.becomes('writ-policy.target', 'ActiveState', 'active');
    const [agent, ready, target] = [
      await timeOf(host, 'writ-agent'),
      await timeOf(host, 'writ-policy-ready'),
      await timeOf(host, 'writ-policy.target'),
    ];
    assert.ok(agent > 0 && agent <= ready && ready <= target, `${agent} ${ready} ${target}`);
    assert.equal(await treeOf(host, policy), await treeOf(office, source));
    const isReported = async () => {
      const { fleet } = await statusOf(host);
      return (
        fleet.state === 'reporting' && fleet.acknowledgedAtMs !== undefined && fleet.problem === undefined
      );
    };
    await until(isReported, 'a report of the host that was booted');
    await stopsInTime(host, 'writ-agent');
  });
});
