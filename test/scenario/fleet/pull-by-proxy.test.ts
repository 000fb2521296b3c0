// Only a proxy resolves the names of the repository and the fleet server: `writ pull` downloads and reports through it.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { describe, it } from 'node:test';
import { writSite } from '../../kit/agent/writ-site.js';
import { runWritProcess } from '../../kit/cli/writ-process.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { makeCertificate } from '../../kit/net/certificate.js';
import { startProxy } from '../../kit/net/proxy-server.js';
import { serveDirectory } from '../../kit/net/serve-repository.js';

describe('a pull through a proxy', () => {
  it('activates the release and sends the report, by the configuration or by the environment', async () => {
    using dir = tempDir();
    const { certFile, keyFile } = await makeCertificate(dir.path, 'fleet');
    const asked: string[] = [];
    const server = createServer(
      { cert: readFileSync(certFile), key: readFileSync(keyFile) },
      (request, response) => {
        asked.push(`${request.method} ${request.url}`);
        response.writeHead(403).end('{}');
      },
    );
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    writeFileSync(dir.join('token'), 'writ_host_good');
    const keys = {
      ...{ sandbox: 'off', repository: 'http://policy.test/' },
      fleet: { url: 'https://fleet.policy.test/', tokenFile: dir.join('token'), ca: certFile },
    };
    const site = writSite(dir, keys);
    await site.repository.publish({ 'block.rpz': 'version 1\n' });
    await using web = await serveDirectory(site.repository.directory, () => false);
    const ports = {
      'policy.test': Number(new URL(web.url).port),
      'fleet.policy.test': (server.address() as AddressInfo).port,
    };
    let refusal: number | undefined;
    await using proxy = await startProxy({ ports, refuse: () => refusal });
    const pull = (env: Readonly<Record<string, string>>) =>
      runWritProcess(['pull', '--config', site.config], { env });
    const byEnvironment = await pull({ HTTP_PROXY: proxy.url, HTTPS_PROXY: proxy.url });
    assert.equal(byEnvironment.exitCode, 0, byEnvironment.stderr);
    assert.match(byEnvironment.stdout, /^ACTIVATED/);
    assert.ok(proxy.lines.includes('GET http://policy.test/metadata/timestamp.json'), proxy.lines.join('\n'));
    assert.ok(proxy.lines.includes('CONNECT fleet.policy.test:443'));
    assert.deepEqual(asked, ['POST /v1/enrol']);

    await site.repository.publish({ 'block.rpz': 'version 2\n' });
    const text = readFileSync(site.config, 'utf8');
    writeFileSync(site.config, JSON.stringify({ ...JSON.parse(text), proxy: proxy.url }));
    const byKey = await pull({ HTTP_PROXY: 'http://127.0.0.1:1', NO_PROXY: '*' });
    assert.equal(byKey.exitCode, 0, byKey.stderr);
    assert.match(byKey.stdout, /^ACTIVATED/);

    refusal = 403;
    const refused = await pull({});
    assert.equal(refused.exitCode, 1, refused.stderr);
    assert.match(refused.stdout, /\[SERVER_ERROR\].*hint: Read the logs of the proxy and of the server/s);
    server.close();
  });
});
