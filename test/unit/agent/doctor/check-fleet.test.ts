import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type FleetFacts, judgeFleet } from '../../../../src/agent/doctor/check-fleet.js';
import { couldNotCheck } from '../../../../src/agent/doctor/judged.js';
import { problemOf } from '../../../../src/core/cycle/problem.js';
import { WritError } from '../../../../src/core/errors.js';

const url = 'https://fleet.example.net:8443/';
const facts: FleetFacts = { url, tokenFile: '/etc/writ/fleet.token', nowMs: 60_000 };
const reporting = { url, state: 'reporting', acknowledgedAtMs: 30_000, pending: 0 } as const;

function judged(seen: Partial<FleetFacts>): string {
  const { state, text, next = '', code = '' } = judgeFleet({ ...facts, ...seen });
  return [state, text, next, code].join(' | ');
}

describe('writ doctor on the fleet', () => {
  it('returns ok with a readable token, or after a report', () => {
    assert.match(judged({}), /^ok \| .* answers, .*fleet\.token can be read; not enrolled yet/);
    assert.match(
      judged({ status: reporting, tokenUnread: 'it is not there' }),
      /^ok .* last report 30 s ago/,
    );
  });

  it('fails without the token that enrolment needs, and warns of a problem that stops reports', () => {
    assert.match(
      judged({ tokenUnread: 'it is not there' }),
      /^FAIL .*cannot enrol .*\| FLEET_TOKEN_UNREADABLE$/,
    );
    const problem = problemOf(new WritError('FLEET_KEY_RETIRED', 'the key is retired'));
    assert.match(
      judged({ status: { ...reporting, problem } }),
      /^warn \| the key is retired .*\| FLEET_KEY_RETIRED$/,
    );
    assert.match(
      judged({ connectFailure: { text: 'connect ECONNREFUSED' } }),
      /^warn \| no answer: connect ECONNREFUSED/,
    );
    const connectFailure = { text: 'the proxy answered with status 403', next: 'Allow it' };
    assert.match(judged({ connectFailure }), /^warn \| no answer: the proxy .* 403 \| Allow it/);
    const waiting = { url, state: 'waiting', pending: 0 } as const;
    assert.match(judged({ status: waiting }), /^warn .*a person has to approve/);
  });
});

describe('#couldNotCheck', () => {
  it('does not advise root to repeat the command as root', () => {
    assert.equal(couldNotCheck('no status', 0).next, 'writ status');
    assert.equal(couldNotCheck('no status', 1000).next, 'sudo writ doctor');
  });
});
