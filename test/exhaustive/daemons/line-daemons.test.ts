// The driver of text lines against real daemons: each must respond and act as its test double does.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import type { Answer, Driver } from '../../../src/workers/contract/driver.js';
import { line } from '../../../src/workers/drivers/line.js';
import { until } from '../../kit/assert/until.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { startBird, startHaproxy, startUnbound } from '../../kit/programs/real-line-daemons.js';
import { needs } from '../../kit/programs/real-programs.js';
import { driverContext } from '../../kit/workers/driver-context.js';

const target = { generation: 7, path: '/policy/generations/7' };

async function ask(driver: Driver): Promise<Answer> {
  const [worker = ''] = await driver.members();
  return driver.reset(worker, { target, timeoutMs: 10_000 });
}

const driverOf = (socket: string, options: object): Driver =>
  line.create({ line: socket, ...options }, driverContext());

describe('the real BIRD', needs('bird', 'bird2'), () => {
  it('confirms a good policy, refuses a broken one and keeps the old one', async () => {
    using dir = tempDir();
    writeFileSync(dir.join('policy.conf'), 'define generation_in_use = 1;\n');
    await using bird = await startBird(dir.path);
    const bgp = { greeting: '^0001 ', until: '^[0-9]{4} ', confirms: true };
    const configure = driverOf(bird.socket, { send: 'configure', expectMatch: '^0003 Reconfigured', ...bgp });
    const inUse = (expect: string): Driver =>
      driverOf(bird.socket, { send: 'eval generation_in_use', expect, ...bgp });

    writeFileSync(dir.join('policy.conf'), 'define generation_in_use = 2;\n');
    assert.equal((await ask(configure)).kind, 'confirmed');
    assert.equal((await ask(inUse('0023 2'))).kind, 'confirmed');

    writeFileSync(dir.join('policy.conf'), 'define generation_in_use = ;\n');
    const refusal = await ask(configure);
    assert.equal(refusal.kind, 'refused');
    assert.match(refusal.text, /8002 .*policy\.conf:1/);
    assert.equal((await ask(inUse('0023 2'))).kind, 'confirmed');
    assert.equal(bird.isAlive(), true);
  });
});

describe('the real unbound', needs('unbound', 'unbound'), () => {
  it('confirms a zone after it was loaded, and refuses a zone that it cannot parse', async () => {
    using dir = tempDir();
    const zone = (serial: number): string =>
      `$ORIGIN block.rpz.\n$TTL 60\n@ SOA ns. admin. ${serial} 3600 600 86400 60\n@ NS ns.\napp.example.com CNAME .\n`;
    writeFileSync(dir.join('block.rpz'), zone(1));
    await using unbound = await startUnbound(dir.path);
    const reload = driverOf(unbound.socket, {
      send: 'UBCT1 auth_zone_reload block.rpz',
      expect: 'ok',
      confirms: true,
    });
    const serial = driverOf(unbound.socket, { send: 'UBCT1 list_auth_zones', expectMatch: 'serial 2$' });
    assert.equal((await ask(serial)).kind, 'refused');
    writeFileSync(dir.join('block.rpz'), zone(2));
    assert.deepEqual(await ask(reload), { kind: 'confirmed', text: 'ok' });
    assert.equal((await ask(serial)).kind, 'notified');
    writeFileSync(dir.join('block.rpz'), 'app.example.com A not-an-address\n');
    const refusal = await ask(reload);
    assert.equal(refusal.kind, 'refused');
    assert.match(refusal.text, /^error/);
  });

  it('responds ok before it reloads its configuration, and exits on a bad one: never confirmed, then dead', async () => {
    using dir = tempDir();
    writeFileSync(dir.join('block.rpz'), '@ 60 SOA ns. admin. 1 3600 600 86400 60\n');
    await using unbound = await startUnbound(dir.path);
    const reload = driverOf(unbound.socket, { send: 'UBCT1 reload', expect: 'ok' });
    writeFileSync(dir.join('unbound.conf'), 'server:\n  no-such-option: yes\n');
    const answer = await ask(reload);
    assert.equal(answer.kind, 'notified');
    await until(async () => (await reload.liveness?.('unbound.ctl')) === 'dead');
    assert.equal(unbound.isAlive(), false);
  });
});

describe('the real HAProxy', needs('haproxy', 'haproxy'), () => {
  it('closes without a response, is unreachable for a moment, and accepts the next notification', async () => {
    using dir = tempDir();
    writeFileSync(dir.join('policy.cfg'), 'backend one\n');
    await using haproxy = await startHaproxy(dir.path);
    const reload = driverOf(haproxy.socket, { send: 'reload', expect: '' });
    for (let times = 0; times < 3; times += 1) {
      assert.deepEqual(await ask(reload), { kind: 'notified', text: 'an empty answer' });
      assert.equal(await reload.liveness?.('master.sock'), 'alive');
    }
    const processes = driverOf(haproxy.socket, { send: 'show proc', until: '^$', expectMatch: ' master ' });
    assert.equal((await ask(processes)).kind, 'notified');
  });
});
