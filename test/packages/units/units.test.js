// Nine daemons under Debian's own units, on a booted machine with the package of Writ and its unit. A mistake and its corrections
// raise no false alarm. Within its bake time, a release is rolled back after a kill of the main process, and after no other event
// in a day of a daemon. The result is a part of docs/truth.md; UPDATE_GOLDEN=1 writes it.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { withPart } from '../../../dist/test/truth/rules/page.js';
import { unitCases } from './cases.js';
import { unitDaemons } from './daemons.js';
import { answered, bootUnits } from './machine.js';
import { drawUnits, unitsPart } from './page.js';

const page = join(import.meta.dirname, '../../../docs/truth.md');
/** Long enough for a squid that takes 30 s to stop and 60 s to start. */
const bakeSeconds = 120;
const folder = mkdtempSync('/var/tmp/writ-units-');
/** @type {Map<string, { unit: string, cells: Map<string, string> }>} */
const played = new Map();
let machine;
let settled;

before(async () => {
  const packages = process.env.WRIT_PACKAGES;
  machine = await bootUnits({ folder, packages, bakeFor: `${bakeSeconds}s` });
  for (const { name, unit } of unitDaemons) {
    const type = await machine.show(unit, 'Type');
    const restart = await machine.show(unit, 'Restart');
    played.set(name, { unit: `${unit}, \`Type=${type}\`, \`Restart=${restart}\``, cells: new Map() });
  }
  settled = await serves('v1');
  await isConfirmed();
  await machine.sh('writ pull -q --force --no-bake');
});
after(async () => {
  await machine?.cutPower();
  rmSync(folder, { recursive: true, force: true });
});

const texts = async () => JSON.stringify([[...(await machine.ask())], await machine.status()]);

/** Waits until each daemon serves the version. @returns the version */
function serves(version, daemons = unitDaemons) {
  const isServed = async () => {
    const versions = await machine.ask();
    return daemons.every(({ name }) => versions.get(name) === version) ? version : undefined;
  };
  return answered(isServed, { seconds: 60, failing: texts });
}

/** The agent searches for a stopped unit with growing gaps, up to a minute. */
const isConfirmed = () =>
  answered(async () => ((await machine.status()).confirmed === true ? true : undefined), {
    ...{ seconds: 90, failing: texts },
  });

const bundleOf = (status, { bundle }) => status.bundles.find((one) => one.bundle === bundle);

/** @returns the outcome of a release of one daemon; undefined while it bakes, and while a failed one is still active */
function fateOf(status, daemon, version) {
  const { serial, bake } = bundleOf(status, daemon);
  const refusal = status.refusals.find(({ bundle }) => bundle === daemon.bundle);
  if (`v${serial}` !== version) return refusal?.code === 'BAKE_FAILED' ? 'taken back' : `${refusal?.code}`;
  if (bake?.state !== 'settled') return undefined;
  return bake.observed === false ? 'settles, not observed' : 'settles';
}

async function release() {
  await isConfirmed();
  const version = machine.publish();
  await machine.sh('writ pull -q');
  await serves(version);
  return version;
}

/** Waits for the end of all bake times, and records the outcomes in the column. */
async function ends(one, version, daemons = unitDaemons) {
  const fates = await answered(
    async () => {
      const status = await machine.status();
      const all = daemons.map((daemon) => fateOf(status, daemon, version));
      return all.includes(undefined) ? undefined : all;
    },
    { seconds: 2 * bakeSeconds, failing: texts },
  );
  for (const [at, { name }] of daemons.entries()) played.get(name).cells.set(one.name, fates[at]);
  assert.deepEqual(
    fates,
    daemons.map(() => one.expected),
    await texts(),
  );
}

/** Longer than the 30 s between two probes of the pages. */
const quietSeconds = 40;

/** Pulls a head with the same files, and asserts that the daemons continue with them and that no problem is reported. */
async function takesEqual(serial, served) {
  await machine.sh('writ pull -q');
  const { bundles } = await machine.status();
  assert.deepEqual([...new Set(bundles.map((one) => `v${one.serial}`))], [serial]);
  const endMs = Date.now() + quietSeconds * 1000;
  while (Date.now() < endMs) {
    const { confirmed, health, problems } = await machine.status();
    assert.deepEqual({ confirmed, health, problems }, { confirmed: true, health: 'ok', problems: [] });
    await setTimeout(5000);
  }
  for (const { name } of unitDaemons) assert.equal((await machine.ask()).get(name), served, name);
}

describe("a mistake and its corrections, under Debian's own units", () => {
  it('is refused, and a revert, a promotion and a withdrawal to the same files raise no alarm', async () => {
    const version = await release();
    await machine.sh('writ pull -q --force --no-bake');
    machine.publish({ isRefused: true });
    assert.notEqual((await machine.type('writ pull -q')).exitCode, 0);
    const { refusals } = await machine.status();
    assert.deepEqual(
      refusals.map(({ bundle }) => bundle).sort(),
      unitDaemons.map(({ bundle }) => bundle).sort(),
    );
    await serves(version);
    const reverted = machine.publish({ policy: version });
    await takesEqual(reverted, version);
    const promoted = machine.publish({ policy: version, channel: 'next' });
    machine.promote('next');
    await takesEqual(promoted, version);
    machine.withdraw(promoted);
    await takesEqual(reverted, version);
    await machine.sh('writ pull -q --force --no-bake');
  });
});

describe("nine daemons under Debian's own units, within a bake time", () => {
  for (const one of unitCases.filter(({ expected }) => expected === 'settles'))
    it(`${one.name}: the release settles, and each daemon serves it`, async () => {
      const version = await release();
      await machine.sh(one.script(unitDaemons));
      await ends(one, version);
      settled = await serves(version);
      assert.deepEqual((await machine.status()).refusals, []);
    });

  it('kill: the release is rolled back, and each daemon serves the previous one once its unit runs', async () => {
    const one = unitCases.find(({ expected }) => expected === 'taken back');
    const version = await release();
    await machine.sh(one.script(unitDaemons));
    await ends(one, version);
    const { refusals } = await machine.status();
    for (const { bundle } of unitDaemons) {
      const refusal = refusals.find((other) => other.bundle === bundle);
      assert.match(JSON.stringify(refusal), /BAKE_FAILED.*WORKER_DIED.*ended abnormally once/);
    }
    const down = [];
    for (const { name, unit } of unitDaemons) {
      const isDown = (await machine.show(unit, 'ActiveState')) === 'failed';
      if (isDown) down.push(unit);
      played
        .get(name)
        .cells.set(one.name, `taken back; ${isDown ? 'a person starts it' : 'systemd starts it'}`);
    }
    const { health, problems } = await machine.status();
    const missing = problems.filter(({ code }) => /^(WORKERS_MISSING|SUPERVISOR_GAVE_UP)$/.test(code));
    assert.deepEqual([health, missing.length], ['critical', down.length], await texts());
    for (const unit of down) await machine.sh(`systemctl reset-failed ${unit} && systemctl start ${unit}`);
    await serves(settled);
    await isConfirmed();
  });

  it('equals the part of docs/truth.md', () => {
    const drawn = drawUnits(unitCases, played);
    const text = readFileSync(page, 'utf8');
    if (process.env.UPDATE_GOLDEN === '1') writeFileSync(page, withPart(text, 'units', drawn));
    else assert.equal(drawn, unitsPart(text));
  });
});
