import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { describe, it } from 'node:test';
import type { FleetSummary } from '../../../../src/core/fleet/answers.js';
import { createSummaryEvents } from '../../../../src/fleet/http/summary-events.js';
import { silentLog } from '../../../../src/platform/telemetry/silent-log.js';
import { throwsCode } from '../../../kit/assert/assert-code.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';

type Reply = Parameters<ReturnType<typeof createSummaryEvents>['follow']>[0];

function fakeReply() {
  const written: string[] = [];
  const raw = Object.assign(new EventEmitter(), {
    ...{ writableLength: 0, writeHead: () => undefined, end: () => undefined },
    write: (text: string) => written.push(text),
  });
  return { reply: { raw, hijack: () => undefined } as unknown as Reply, raw, written };
}

describe('the summary to those who follow it', () => {
  it('has a bound on how many they are: FLEET_OVERLOADED, until one leaves', () => {
    const summary = async () => ({}) as FleetSummary;
    const events = createSummaryEvents({ summary, clock: fakeClock(), log: silentLog() });
    const all = Array.from({ length: 200 }, fakeReply);
    for (const { reply } of all) events.follow(reply, 'view');
    throwsCode('FLEET_OVERLOADED', () => events.follow(fakeReply().reply, 'view'));
    all[0]?.raw.emit('close');
    events.follow(fakeReply().reply, 'view');
    events.close();
  });

  it('is one look a second for all of them, and an age alone is no news', async () => {
    const clock = fakeClock();
    let looks = 0;
    const summary = async () => ({ atMs: ++looks, countedAtMs: looks, sentence: 'same' }) as FleetSummary;
    const events = createSummaryEvents({ summary, clock, log: silentLog() });
    const [one, two] = [fakeReply(), fakeReply()];
    for (const { reply } of [one, two]) events.follow(reply, 'view');
    for (let at = 0; at < 5; at++) await clock.advance(1000);
    assert.ok(looks >= 5 && looks <= 7, `${looks} looks`);
    assert.equal(one.written.filter((text) => text.startsWith('event: summary')).length, 1);
    events.close();
  });
});
