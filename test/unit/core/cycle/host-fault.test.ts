import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { hostFaultIn } from '../../../../src/core/cycle/host-fault.js';

describe('the first line of a refusal', () => {
  for (const line of [
    "cp: cannot create regular file '/etc/app/app.conf': Read-only file system",
    'Error: EROFS: read-only file system, open /etc/x',
    'netlink: Error: cache initialization failed: Operation not permitted',
    'install: cannot open /x: Permission denied',
    'tee: /x: No space left on device',
    'nginx: [emerg] host not found in upstream "app.internal" in /etc/nginx/nginx.conf:12',
    'curl: (6) Could not resolve host: db.internal',
    'psql: error: could not translate host name: Temporary failure in name resolution',
  ])
    it(`names a fault of the host: ${line.slice(0, 40)}`, () =>
      assert.notEqual(hostFaultIn(line), undefined));

  for (const line of ['', 'bad zone', 'permission: denied_clients is unknown', 'no space between words'])
    it(`names none: "${line}"`, () => assert.equal(hostFaultIn(line), undefined));
});
