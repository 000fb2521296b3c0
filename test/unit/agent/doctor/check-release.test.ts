// `writ doctor`, check `release`: the finding for a missed release, by the answer to a request for the first byte of its file.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { judgeByte } from '../../../../src/agent/doctor/check-release.js';

const url = 'https://a/targets/b/2.tar.br';
const missed = {
  bundle: 'b',
  serial: 2,
  sinceMs: 1,
  code: 'DOWNLOAD_TRUNCATED',
  url,
  state: 'stale',
} as const;

describe('the check of a missed release', () => {
  it('fails with the code of the answer if the server does not send the byte', () => {
    const error = { code: 'SERVER_ERROR', message: `${url} answered with status 403`, hint: 'Read the log.' };
    const judged = judgeByte({ missed, url, error });
    assert.deepEqual(judged, {
      ...{ state: 'FAIL', text: `b 2: ${url} answered with status 403`, next: 'Read the log.' },
      code: 'SERVER_ERROR',
    });
    assert.equal(judgeByte({ missed, url, status: 404 }).state, 'FAIL');
  });

  it('warns with the code of the last attempt if the server sends the byte', () => {
    const { state, code, text } = judgeByte({ missed, url, status: 206 });
    assert.deepEqual([state, code], ['warn', 'DOWNLOAD_TRUNCATED']);
    assert.match(text, /status 206 .*\[DOWNLOAD_TRUNCATED\]/);
  });

  it('warns without a request if no web server has the file, and returns ok during a first download', () => {
    assert.equal(judgeByte({ missed, url: undefined }).state, 'warn');
    const { code: _, url: _url, ...first } = missed;
    assert.equal(judgeByte({ missed: first, url: undefined }).state, 'ok');
  });
});
