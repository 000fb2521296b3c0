// A booted Debian with the daemons as their packages configure them, the package of Writ as in docs/install.md, and a
// repository to which a test publishes. Owns no assertion.
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { parse } from 'yaml';
import { blocksOf } from '../../../dist/test/kit/pages/page-commands.js';
import { bootThis } from '../booted-root.js';
import { unitDaemons } from './daemons.js';

const root = join(import.meta.dirname, '../../..');

/**
 * @param {{ folder: string, packages: string, bakeFor: string }} wanted `packages`: the folder with those of Writ
 */
export async function bootUnits({ folder, packages, bakeFor }) {
  const given = join(folder, 'given');
  const debs = join(given, 'debs');
  mkdirSync(debs, { recursive: true });
  const [writ] = readdirSync(packages).filter((name) => /^writ_.*\.deb$/.test(name));
  cpSync(join(packages, writ), join(given, writ));
  execFileSync(
    'apt-get',
    ['-qq', '-o', 'APT::Sandbox::User=root', 'download', ...unitDaemons.flatMap((one) => one.packages)],
    { cwd: debs },
  );
  const repository = createRepository(given);
  writeFileSync(join(given, 'agent.yaml'), JSON.stringify(configOf(bakeFor)));
  repository.publish();

  const machine = await bootThis({ folder, name: 'units' });
  try {
    // As on an installed Debian: services may start, and systemd writes to its journal.
    await machine.sh('rm -f /usr/sbin/policy-rc.d; systemctl log-target journal-or-kmsg');
    await machine.sh(`apt-get install -y /given/${writ}`);
    const [ordering] = blocksOf(readFileSync(join(root, 'docs/systemd.md'), 'utf8'), 'ini');
    for (const { unit, setUp } of unitDaemons) {
      const dropIns = `/etc/systemd/system/${unit}.d`;
      await machine.sh(`set -e; mkdir -p ${dropIns}; cat >${dropIns}/writ.conf <<'END'\n${ordering}END
${setUp}`);
    }
    await machine.sh(`set -e; install -m 0644 /given/agent.yaml /etc/writ/
install -m 0644 /given/repo/metadata/1.root.json /etc/writ/root.json
writ config check`);
    const units = unitDaemons.map(({ unit }) => unit).join(' ');
    await machine.sh(`systemctl daemon-reload; systemctl enable --now writ-agent`);
    // On a busy machine a start of Debian's squid fails sometimes before it notifies systemd.
    await machine.sh(`systemctl enable --now ${units} || systemctl start ${units}`);
  } catch (error) {
    await machine.cutPower();
    throw error;
  }
  const status = async () => JSON.parse((await machine.type('writ status --json')).stdout);
  return {
    ...machine,
    status,
    ...repository,
    /** @returns the served version of each daemon, by its name; empty if it does not answer */
    ask: async () =>
      new Map(
        await Promise.all(
          unitDaemons.map(async ({ name, ask }) => [name, (await machine.type(ask)).stdout.trim()]),
        ),
      ),
  };
}

/** @returns the configuration of one host with all daemons: the bundles and workers of the pages, and a bake time */
function configOf(bakeFor) {
  const parts = unitDaemons.map(({ agent }) => parse(agent));
  return {
    repository: 'file:///given/repo',
    bundles: parts.flatMap(({ bundles }) => bundles.map((one) => ({ ...one, bake: { for: bakeFor } }))),
    workers: parts.flatMap(({ workers }) => workers),
  };
}

function createRepository(given) {
  const where = ['--repository', join(given, 'repo'), '--keys', join(given, 'keys')];
  const source = join(given, 'source');
  const writ = (...args) =>
    execFileSync(process.execPath, [join(root, 'dist/writ/main.js'), ...args, ...where], { stdio: 'pipe' });
  writ('init', '--no-passphrase');
  let serial = 0;
  return {
    /**
     * Publishes a release of each bundle. `policy` is the version in its files, by default its own.
     * @param {{ policy?: string, isRefused?: boolean, channel?: string }} wanted
     * @returns their version: `v` and their serial
     */
    publish: ({ policy, isRefused = false, channel = 'stable' } = {}) => {
      serial += 1;
      for (const { bundle, filesOf, stamps } of unitDaemons) {
        rmSync(source, { recursive: true, force: true });
        mkdirSync(source);
        for (const [name, text] of Object.entries(filesOf(policy ?? `v${serial}`, isRefused)))
          writeFileSync(join(source, name), text);
        const named = ['--bundle', bundle, '--channel', channel, '--revision', `v${serial}`];
        writ('publish', source, ...named, ...stamps.flatMap((one) => ['--stamp', one]));
      }
      return `v${serial}`;
    },
    /** Points the channel of the host at the head of another one, for each bundle. */
    promote: (channel) => {
      for (const { bundle } of unitDaemons)
        writ('promote', '--bundle', bundle, '--from', channel, '--to', 'stable');
    },
    /** Withdraws a release of each bundle. */
    withdraw: (version) => {
      for (const { bundle } of unitDaemons)
        writ('withdraw', '--bundle', bundle, '--channel', 'stable', '--serial', version.slice(1));
    },
  };
}

/**
 * @param {() => Promise<T | undefined>} ask
 * @returns {Promise<T>} its first answer that is not undefined. @throws with the text of `failing` after `seconds`
 * @template T
 */
export async function answered(ask, { seconds, failing }) {
  const endMs = Date.now() + seconds * 1000;
  for (;;) {
    const found = await ask();
    if (found !== undefined) return found;
    if (Date.now() > endMs) throw new Error(`not after ${seconds} s: ${await failing()}`);
    await setTimeout(1000);
  }
}
