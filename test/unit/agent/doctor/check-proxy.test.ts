import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { judgeProxies } from '../../../../src/agent/doctor/check-proxy.js';

const url = 'https://policy.test/';
const used = { url, proxy: 'http://proxy.test:3128', from: 'HTTPS_PROXY' };

describe('the proxies of a host', () => {
  it('are listed with the setting that they come from', () => {
    const uses = [used, { url: 'https://b.test/', from: 'NO_PROXY' }];
    const judged = judgeProxies({ uses, agent: uses, failure: [undefined, undefined] });
    assert.deepEqual(judged, [
      { state: 'ok', text: `${url}: through http://proxy.test:3128 (HTTPS_PROXY)` },
      { state: 'ok', text: 'https://b.test/: no proxy (NO_PROXY)' },
    ]);
  });

  it('are a failure if a file or a URL cannot be used', () => {
    const failure = { code: 'PROXY_INVALID', message: '/c: EACCES', hint: 'Correct it.' };
    const [judged] = judgeProxies({ uses: [used], agent: undefined, failure: [failure] });
    assert.deepEqual([judged?.state, judged?.code], ['FAIL', 'PROXY_INVALID']);
  });

  it('are a warning if the running agent has other ones', () => {
    const [, other] = judgeProxies({ uses: [used], agent: [], failure: [undefined] });
    assert.deepEqual(
      [other?.state, other?.text],
      ['warn', 'the running agent has another environment: no proxy'],
    );
    const [alone] = judgeProxies({ uses: [], agent: [used], failure: [] });
    assert.match(alone?.text ?? '', /through http:\/\/proxy\.test:3128 \(HTTPS_PROXY\)$/);
  });
});
