import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  type EnrolFacts,
  judgeEnrolment,
  maxWaitingOfToken,
} from '../../../../src/fleet/hosts/enrol-rules.js';

const nowMs = 100_000_000;
const token = { revoked_at_ms: 0, expires_at_ms: 0, uses_left: -1, hosts: '' };
const fleet = { id: 'f', created_at_ms: 0, accepting_since_ms: 0, accepting_until_ms: nowMs };
const silent = { key_id: 'old', state: 'accepted', last_seen_ms: 0, every_ms: 300_000 } as const;
const reporting = { ...silent, key_id: 'live', last_seen_ms: nowMs - 1 };
const facts: EnrolFacts = {
  token,
  own: undefined,
  sameName: [],
  waiting: 0,
  host: 'web-1',
  replaces: false,
  fleet,
  nowMs,
};

describe('the verdict on a host that enrols', () => {
  const waits = { kind: 'waiting' };
  const takes = (...retires: string[]) => ({ kind: 'accepted', retires });
  const cases: readonly (readonly [name: string, more: Partial<EnrolFacts>, verdict: object])[] = [
    ['takes a new name', {}, takes()],
    ['takes a composed name', { host: 'caf\u00e9' }, takes()],
    ['takes a name that only a retired key had', { sameName: [{ ...silent, state: 'retired' }] }, takes()],
    ['takes a name that others wait for', { sameName: [{ ...silent, state: 'waiting' }] }, takes()],
    ['lets a known name wait, though its key is silent', { sameName: [silent] }, waits],
    ['replaces a silent key where it is asked to', { sameName: [silent], replaces: true }, takes('old')],
    ['replaces no key that reports', { sameName: [silent, reporting], replaces: true }, waits],
    [
      'replaces no key while the fleet accepts no reports',
      { sameName: [silent], replaces: true, fleet: { ...fleet, accepting_since_ms: nowMs - 1000 } },
      waits,
    ],
    [
      'answers a key that it knows',
      { own: { state: 'accepted' }, token: undefined },
      { kind: 'known', state: 'accepted' },
    ],
    ['answers a key that waits', { own: { state: 'waiting' } }, { kind: 'known', state: 'waiting' }],
  ];
  for (const [name, more, verdict] of cases)
    it(name, () => assert.deepEqual(judgeEnrolment({ ...facts, ...more }), verdict));

  const refusals: readonly (readonly [code: string, more: Partial<EnrolFacts>])[] = [
    ['FLEET_TOKEN_REFUSED', { token: undefined }],
    ['FLEET_TOKEN_REFUSED', { token: { ...token, revoked_at_ms: 1 } }],
    ['FLEET_TOKEN_REFUSED', { token: { ...token, expires_at_ms: nowMs } }],
    ['FLEET_TOKEN_REFUSED', { token: { ...token, uses_left: 0 } }],
    ['FLEET_HOST_NOT_COVERED', { token: { ...token, hosts: 'db-*' } }],
    ['FLEET_KEY_RETIRED', { own: { state: 'retired' } }],
    ['FLEET_REPORT_INVALID', { host: 'web-1 ' }],
    ['FLEET_REPORT_INVALID', { host: 'cafe\u0301' }],
    ['FLEET_ENROL_FULL', { sameName: [reporting], waiting: maxWaitingOfToken }],
  ];
  for (const [code, more] of refusals)
    it(`refuses with ${code}: ${JSON.stringify(more)}`, () => {
      const verdict = judgeEnrolment({ ...facts, ...more });
      assert.equal(verdict.kind === 'refused' ? verdict.code : verdict.kind, code);
    });
});
