import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseRequestPath } from '../../../../src/server/files/request-path.js';

const digest = '0123456789abcdef'.repeat(4);

describe('request path', () => {
  it('knows the files of a repository with consistent snapshots', () => {
    assert.deepEqual(parseRequestPath('/metadata/timestamp.json'), { kind: 'timestamp' });
    assert.deepEqual(parseRequestPath('/metadata/12.root.json'), {
      kind: 'root',
      file: 'metadata/12.root.json',
    });
    for (const role of ['snapshot', 'targets', 'dns-team']) {
      const file = `metadata/7.${role}.json`;
      assert.deepEqual(parseRequestPath(`/${file}`), { kind: 'metadata', file });
    }
    for (const file of [
      `targets/dns-edge/${digest}.stable.tar.br`,
      `targets/${digest}${digest}.file`,
      `targets/a/b/c/${digest}.x`,
    ]) {
      assert.deepEqual(parseRequestPath(`/${file}`), { kind: 'target', file });
    }
    assert.deepEqual(parseRequestPath('/healthz'), { kind: 'health' });
    assert.deepEqual(parseRequestPath('/metrics'), { kind: 'metrics' });
  });

  it('ignores the query and understands the absolute form', () => {
    assert.equal(parseRequestPath('/metadata/timestamp.json?nocache=1').kind, 'timestamp');
    assert.equal(parseRequestPath('/healthz?verbose').kind, 'health');
    assert.equal(parseRequestPath('http://policy.example.net/metadata/timestamp.json').kind, 'timestamp');
    assert.equal(parseRequestPath('HTTPS://policy.example.net:443/metrics').kind, 'metrics');
  });

  it('decodes a name once, so that a role file is found by the name it has on disk', () => {
    assert.deepEqual(parseRequestPath('/metadata/3.dns%20team%25.json'), {
      kind: 'metadata',
      file: 'metadata/3.dns team%.json',
    });
    assert.deepEqual(parseRequestPath('/metadata/3.a%252Fb.json'), {
      kind: 'metadata',
      file: 'metadata/3.a%2Fb.json',
    });
    assert.deepEqual(parseRequestPath('/metadata/3.z%C3%B6ne.json'), {
      kind: 'metadata',
      file: 'metadata/3.zöne.json',
    });
  });

  const refused = [
    '',
    '/',
    '*',
    'metadata/timestamp.json',
    '//metadata/timestamp.json',
    '/metadata//timestamp.json',
    '/metadata/timestamp.json/',
    '/metadata',
    '/metadata/',
    '/targets/',
    '/metadata/../.lock',
    '/.lock',
    '/metadata/.lock',
    '/metadata/1.root.json.lock',
    '/metadata/%2e%2e/.lock',
    '/metadata/%2e%2e%2f.lock',
    '/metadata/..%2f..%2fetc%2fpasswd',
    '/metadata/1.a%2Fb.json',
    '/metadata/1.a%5Cb.json',
    '/metadata/1.a\\b.json',
    '/metadata/1.a%00.json',
    '/metadata/1.a%0a.json',
    '/metadata/1.%zz.json',
    '/metadata/1.%ff.json',
    '/metadata/.writ-tmp-0123.json',
    '/metadata/root.json',
    '/metadata/0.root.json',
    '/metadata/01.root.json',
    '/metadata/-1.root.json',
    '/metadata/9007199254740992.root.json',
    '/metadata/99999999999999999.root.json',
    '/metadata/9007199254740992.snapshot.json',
    '/metadata/1..json',
    '/metadata/1.snapshot.json.bak',
    '/metadata/sub/1.root.json',
    `/metadata/1.${'x'.repeat(300)}.json`,
    '/keys/snapshot.key',
    '/targets/dns-edge/stable.tar.br',
    `/targets/dns-edge/${digest.toUpperCase()}.stable.tar.br`,
    `/targets/dns-edge/${digest}`,
    `/targets/dns-edge/${digest}.`,
    `/targets/../targets/${digest}.x`,
    `/targets/./${digest}.x`,
    `/targets/.hidden/${digest}.x`,
    `/targets${'/a'.repeat(40)}/${digest}.x`,
    '/healthz/',
    '/metrics/x',
    'http://policy.example.net',
    'ftp://policy.example.net/healthz',
  ];
  for (const url of refused) {
    it(`finds nothing under ${JSON.stringify(url.slice(0, 60))}`, () => {
      assert.deepEqual(parseRequestPath(url), { kind: 'none' });
    });
  }
});
