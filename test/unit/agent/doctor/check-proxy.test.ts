import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { judgeProxies } from '../../../../src/agent/doctor/check-proxy.js';

const url = 'https://policy.test/';
const used = { url, proxy: 'http://proxy.test:3128', from: 'HTTPS_PROXY' };

describe('the proxies of a host', () => {
  it('are listed with what names them', () => {
    const uses = [used, { url: 'https://b.test/', from: 'NO_PROXY' }];
    const judged = judgeProxies({ uses, agent: uses, trouble: [undefined, undefined] });
    assert.deepEqual(judged, [
      { state: 'ok', text: `${url}: through http://proxy.test:3128 (HTTPS_PROXY)` },
      { state: 'ok', text: 'https://b.test/: no proxy (NO_PROXY)' },
    ]);
  });

  it('are a failure where a file or a URL cannot be used', () => {
    const trouble = { code: 'PROXY_INVALID', message: '/c: EACCES', hint: 'Correct it.' };
    const [judged] = judgeProxies({ uses: [used], agent: undefined, trouble: [trouble] });
    assert.deepEqual([judged?.state, judged?.code], ['FAIL', 'PROXY_INVALID']);
  });

  it('are a warning where the running agent has other ones', () => {
    const [, other] = judgeProxies({ uses: [used], agent: [], trouble: [undefined] });
    assert.deepEqual(
      [other?.state, other?.text],
      ['warn', 'the running agent has another environment: no proxy'],
    );
    const [alone] = judgeProxies({ uses: [], agent: [used], trouble: [] });
    assert.match(alone?.text ?? '', /through http:\/\/proxy\.test:3128 \(HTTPS_PROXY\)$/);
  });
});
