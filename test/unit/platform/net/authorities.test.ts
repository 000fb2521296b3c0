// Which certificate authorities a connection trusts, and which files of them are refused.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { readAuthorityFile, systemAuthorities } from '../../../../src/platform/net/authorities.js';
import type { ReadVerdict } from '../../../../src/platform/read-file.js';
import { throwsCode } from '../../../kit/assert/assert-code.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { runWritProcess } from '../../../kit/cli/writ-process.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';
import { makeCertificate } from '../../../kit/net/certificate.js';

let dir: TempDir;
let pem: string;
let key: string;
function verdictOn(content: string | Buffer): string {
  const path = dir.join('ca.pem');
  writeFileSync(path, content);
  const read = readAuthorityFile(path);
  return read.kind === 'read' ? 'read' : read.why;
}

describe('certificate authorities', () => {
  before(async () => {
    dir = tempDir();
    const { certFile, keyFile } = await makeCertificate(dir.path, 'authority');
    pem = readFileSync(certFile, 'utf8');
    key = readFileSync(keyFile, 'utf8');
  });
  after(() => dir[Symbol.dispose]());

  describe('a file of authorities', () => {
    it('may have other text, a key, CRLF and a byte order mark', () => {
      const contents = [pem, `${pem}${pem}`, `Issuer: our own\n${pem}end`, `${key}${pem}`, `\ufeff${pem}`];
      for (const content of [...contents, pem.replaceAll('\n', '\r\n')])
        assert.equal(verdictOn(content), 'read');
    });

    it('is refused when it is empty, in DER, a key alone, cut, or not base64', () => {
      const body = pem.split('\n').slice(1, -2).join('');
      for (const [content, why] of [
        ['', /^it is empty$/],
        [' \n', /^it is empty$/],
        [Buffer.from(body, 'base64'), /^it contains no certificate in PEM$/],
        [key, /^it contains no certificate in PEM$/],
        [pem.slice(0, pem.length / 2), /^a certificate in it is not complete$/],
        [`${pem}${pem.slice(0, pem.length / 2)}`, /^a certificate in it is not complete$/],
        [`${pem}${pem.replace(body.slice(0, 64), 'A'.repeat(64))}`, /^its certificate 2 cannot be read$/],
      ] as const)
        assert.match(verdictOn(content), why);
      assert.equal(readAuthorityFile(dir.join('none')).kind, 'refused');
    });
  });

  describe('the authorities of the system', () => {
    const other = '-----BEGIN CERTIFICATE-----\nother';
    const trusted = (env: Record<string, string>, files: Record<string, string>) =>
      systemAuthorities({
        env,
        ownList: ['own'],
        read: (path): ReadVerdict => {
          const text = files[path];
          return text === undefined
            ? { kind: 'absent', why: 'ENOENT' }
            : { kind: 'read', bytes: Buffer.from(text) };
        },
      });
    const [debian, redHat] = ['/etc/ssl/certs/ca-certificates.crt', '/etc/pki/tls/certs/ca-bundle.crt'];

    it('are those of SSL_CERT_FILE, of the file of the system, or of Node, in this order', () => {
      assert.deepEqual(trusted({ SSL_CERT_FILE: '/mine' }, { '/mine': other, [debian]: pem }), [other]);
      assert.deepEqual(trusted({}, { [debian]: pem, [redHat]: other }), [pem]);
      assert.deepEqual(trusted({}, { [redHat]: pem }), [pem]);
      assert.deepEqual(trusted({}, { [debian]: '', [redHat]: pem }), [pem]);
      assert.deepEqual(trusted({}, {}), ['own']);
    });

    it('are joined by those of NODE_EXTRA_CA_CERTS', () => {
      const env = { NODE_EXTRA_CA_CERTS: '/extra' };
      assert.deepEqual(trusted(env, { '/extra': other, [debian]: pem }), [pem, other]);
      assert.deepEqual(trusted(env, { '/extra': other }), ['own', other]);
      assert.deepEqual(trusted(env, {}), ['own']);
    });

    it('are not replaced by others when SSL_CERT_FILE cannot be used', () => {
      throwsCode('TLS_INVALID', () => trusted({ SSL_CERT_FILE: '/gone' }, { [debian]: pem }));
    });

    it('are those of SSL_CERT_FILE for the program', longCase, async () => {
      const server = createServer({ cert: pem, key }, (_, response) => response.writeHead(401).end('{}'));
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      try {
        const tokenFile = dir.join('token');
        writeFileSync(tokenFile, 'writ_people_abc\n');
        const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
        const ask = (env: Record<string, string>) =>
          runWritProcess(['fleet', 'log', '--url', url, '--token-file', tokenFile], { env });
        assert.match((await ask({})).stderr, /certificate of the server is not trusted/);
        assert.match((await ask({ SSL_CERT_FILE: dir.join('authority.crt') })).stderr, /status 401/);
        assert.match((await ask({ NODE_EXTRA_CA_CERTS: dir.join('authority.crt') })).stderr, /status 401/);
        assert.match((await ask({ SSL_CERT_FILE: tokenFile })).stderr, /SSL_CERT_FILE/);
      } finally {
        server.close();
      }
    });
  });
});
