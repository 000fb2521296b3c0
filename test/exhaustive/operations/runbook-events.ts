// Events between the commands of docs/operations.md, by the names in the page's comments: accidents, thefts, and checks of the
// result of a runbook.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import type { Machine, RunbookWorld } from './runbook-world.js';

type Event = (world: RunbookWorld) => Promise<void>;

export const runbookEvents: Readonly<Record<string, Event>> = {
  'ben loses his key': async ({ dir }) => fs.rmSync(dir.join('ben', 'home', 'ben.key')),
  'the office burns down': async ({ dir }) => {
    fs.rmSync(dir.join('office', 'home'), { recursive: true });
    fs.mkdirSync(dir.join('office', 'home'));
  },
  'a bad release': async (world) => {
    await typed(world, 'office', 'echo "example.com CNAME ." > policy/block.rpz', 'of-the-office');
    await publish(world, 'bad');
  },
  'somebody edits the policy by hand': async (world) => {
    const path = world.path('host', '/var/lib/writ/policy/current/dns-edge/block.rpz');
    fs.appendFileSync(path, 'mine.example.com CNAME .\n');
  },
  'the disk takes the kept archive too': async (world) => {
    fs.appendFileSync(world.path('host', '/var/lib/writ/policy/current/dns-edge/block.rpz'), 'again\n');
    const kept = world.path('host', '/var/lib/writ/archives/dns-edge');
    for (const name of fs.readdirSync(kept, { recursive: true, encoding: 'utf8' }))
      if (name.endsWith('.tar.br')) fs.truncateSync(`${kept}/${name}`, 10);
  },
  'the agents run': async (world) => {
    await typed(world, 'host', 'systemctl start writ-agent');
  },
  'the server is robbed, and built anew': async (world) => {
    const { dir } = world;
    await typed(
      world,
      'server',
      `cp -a /srv/writ/repo "$HOME/repo" && cp -a /etc/writ/online "$HOME/online"`,
    );
    // Far ahead of the owner's versions; the host downloads it.
    for (let count = 0; count < 4; count += 1) {
      await typed(world, 'server', 'writ refresh --repository "$HOME/repo" --keys "$HOME/online"');
    }
    await typed(world, 'server', 'cp "$HOME"/repo/metadata/* /srv/writ/repo/metadata/');
    await typed(world, 'host', 'writ pull');
    await typed(world, 'server', 'systemctl stop writ-server');
    for (const place of ['srv/writ', 'etc/writ']) fs.rmSync(dir.join('server', place), { recursive: true });
    fs.mkdirSync(dir.join('server', 'etc/writ'));
  },
  'the server signs by a clock that is 30 days ahead': async (world) => {
    const ahead = 'WRIT_TEST_SHIFT_MS=$((WRIT_TEST_SHIFT_MS + 2592000000))';
    await typed(world, 'server', `${ahead} writ refresh --repository /srv/writ/repo --keys /etc/writ/online`);
  },
  'the thief tries again': async (world) => {
    await typed(world, 'server', 'cp "$HOME"/repo/metadata/timestamp.json /srv/writ/repo/metadata/');
    const run = await world.type('host', 'writ pull');
    assert.equal(run.exitCode, 1, run.output);
    assert.match(run.output, /SIGNATURE_WRONG_KEY/);
  },
  'the targets key is stolen and used': async (world) => {
    await typed(world, 'office', 'echo "example.com CNAME thief." > policy/block.rpz');
    await delegateTo(world, 'dns-team', '/media/usb/dns-team.pub');
    await publish(world, 'stolen');
    assert.match(await typed(world, 'host', 'writ pull'), /ACTIVATED/);
    // The thief replaces the key of a team, and publishes a release that waits for the online keys.
    await delegateTo(world, 'dora', '/media/usb/thief.pub');
    await typed(world, 'office', 'echo "example.org CNAME thief." > policy/block.rpz');
    await upload(world, 'waits');
    await typed(world, 'office', 'echo "app.example.com CNAME ." > policy/block.rpz');
  },
  'a host asks before the server has signed': async (world) => {
    const env = '/etc/writ/server.env';
    await typed(world, 'server', `sed -i.keys '/^WRIT_SERVE_KEYS=/d' ${env} && systemctl start writ-server`);
    const pull = await world.type('host', 'writ pull');
    assert.deepEqual([pull.exitCode, /SIGNATURE_WRONG_KEY/.test(pull.output)], [1, true], pull.output);
    const health = await world.type('host', 'writ health');
    assert.deepEqual([health.exitCode, /UNTRUSTED_ACTIVE/.test(health.output)], [2, true], health.output);
    await typed(world, 'server', `systemctl stop writ-server && mv ${env}.keys ${env}`);
  },
  'two root keys are stolen and used': async (world) => {
    await typed(world, 'dora', 'writ key new thief.key --no-passphrase && cp thief.pub /media/usb/');
    const change = '--remove anna --remove ben --remove carol --add /media/usb/thief.pub --threshold 1 --yes';
    const places = '--repository /srv/writ/repo --keys /etc/writ/online';
    await typed(world, 'server', `writ root rotate ${change} ${places} -o /media/usb/thief.proposal`);
    for (const name of ['ben', 'carol'] as const) {
      const sign = `writ sign /media/usb/thief.proposal --key ${name}.key`;
      await typed(world, name, sign, `${name}-alone`);
    }
    await typed(
      world,
      'dora',
      'writ sign /media/usb/thief.proposal --key thief.key --repository "$WORLD/server/srv/writ/repo"',
    );
    await typed(world, 'server', `writ root commit /media/usb/thief.proposal ${places}`);
    await typed(world, 'host', 'writ pull && writ status | grep "root v2"');
  },
  'the server is started without its keys': async (world) => {
    const env = '/etc/writ/server.env';
    await typed(world, 'server', `sed -i '/^WRIT_SERVE_KEYS=/d' ${env} && systemctl restart writ-server`);
  },
  'the root was renewed and the targets forgotten': async (world) => {
    await world.sleep(300 * dayMs);
    await renewRoot(world);
  },
  'the repository sleeps for two years': async (world) => {
    const env = '/etc/writ/server.env';
    await typed(
      world,
      'server',
      `sed -i.awake '/^WRIT_SERVE_KEYS=/d' ${env} && systemctl restart writ-server`,
    );
    await world.sleep(730 * dayMs);
    await typed(world, 'server', `mv ${env}.awake ${env}`);
  },
  'a second host has its root and its configuration': async ({ dir }) => {
    for (const name of ['root.json', 'agent.yaml']) {
      const file = fs.readFileSync(dir.join('host', 'etc/writ', name), 'utf8');
      const there = file.replaceAll(dir.join('host'), dir.join('cellar'));
      fs.writeFileSync(dir.join('cellar', 'etc/writ', name), there);
    }
  },
  'the server is down': async (world) => {
    await typed(world, 'server', 'systemctl stop writ-server');
  },
};

const dayMs = 86_400_000;

async function renewRoot(world: RunbookWorld): Promise<void> {
  await typed(world, 'office', 'rsync -a writ@server:/srv/writ/repo/ repo/');
  const places = '--repository repo --keys keys';
  await typed(world, 'office', `writ root rotate ${places} -o /media/usb/early.proposal`);
  for (const name of ['anna', 'ben'] as const) {
    await typed(world, name, `writ sign /media/usb/early.proposal --key ${name}.key`, `${name}-alone`);
  }
  await typed(world, 'office', `writ root commit /media/usb/early.proposal ${places}`);
  const upload = 'rsync -a --exclude=timestamp.json repo/metadata/ writ@server:/srv/writ/repo/metadata/';
  await typed(world, 'office', upload);
}

/** Delegates `zones/*` to a new key of a machine; hosts see it after the server's next signature. */
async function delegateTo(world: RunbookWorld, machine: Machine, pub: string): Promise<void> {
  const made = `writ key new team.key --name dns-team --no-passphrase && cp team.pub ${pub} && rm team.key team.pub`;
  await typed(world, machine, made);
  const change = `--paths 'zones/*' --key ${pub} --yes --repository repo --keys keys`;
  await typed(world, 'office', `writ delegate dns-team ${change}`, 'of-the-office');
}

async function publish(world: RunbookWorld, revision: string): Promise<void> {
  await upload(world, revision);
  await typed(world, 'server', 'writ refresh --repository /srv/writ/repo --keys /etc/writ/online');
}

/** Publishes in the office and uploads: the release waits for the online keys. */
async function upload(world: RunbookWorld, revision: string): Promise<void> {
  const places = '--repository repo --keys keys';
  for (const command of [
    'rsync -a writ@server:/srv/writ/repo/ repo/',
    `writ publish policy ${places} --bundle dns-edge --revision ${revision}`,
    'rsync -a repo/targets/ writ@server:/srv/writ/repo/targets/',
    'rsync -a --exclude=timestamp.json repo/metadata/ writ@server:/srv/writ/repo/metadata/',
  ]) {
    await typed(world, 'office', command, 'of-the-office');
  }
}

async function typed(
  world: RunbookWorld,
  machine: Machine,
  text: string,
  ...passphrases: readonly string[]
): Promise<string> {
  const run = await world.type(machine, text, { typed: passphrases });
  assert.equal(run.exitCode, 0, run.output);
  return run.output;
}
