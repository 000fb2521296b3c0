// A self-signed certificate made by openssl, and a request that trusts only one certificate.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { get } from 'node:https';
import type { TLSSocket } from 'node:tls';
import { runCommand } from '../../../src/platform/process/run-command.js';
import type { TlsFiles } from '../../../src/platform/serve/tls-files.js';

/** @param name common name; the certificate holds for 127.0.0.1 and `*.policy.test` */
export async function makeCertificate(directory: string, name: string): Promise<TlsFiles> {
  const certFile = `${directory}/${name}.crt`;
  const keyFile = `${directory}/${name}.pem`;
  const result = await runCommand({
    argv: [
      ...(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256'] as const),
      ...[
        '-nodes',
        '-days',
        '2',
        '-subj',
        `/CN=${name}`,
        '-addext',
        'subjectAltName=IP:127.0.0.1,DNS:*.policy.test',
      ],
      ...['-out', certFile, '-keyout', keyFile],
    ],
    timeoutMs: 60_000,
    maxOutputBytes: 10_000,
  });
  assert.ok(result.kind === 'exited' && result.exitCode === 0, JSON.stringify(result));
  return { certFile, keyFile };
}

/** As makeCertificate, valid in another time. @param from as `20990101000000Z` */
export async function makeCertificateFor(
  directory: string,
  { from, to }: { readonly from: string; readonly to: string },
): Promise<TlsFiles> {
  const certFile = `${directory}/${from}.crt`;
  const keyFile = `${directory}/${from}.pem`;
  const script = `
    printf '[ca]\ndefault_ca=d\n[d]\ndatabase=index\nserial=serial\nnew_certs_dir=.\ndefault_md=sha256\npolicy=p\n' > ca.cnf
    printf 'copy_extensions=copy\n[p]\ncommonName=supplied\n' >> ca.cnf
    : > index; echo 01 > serial
    openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=time \
      -addext subjectAltName=IP:127.0.0.1 -keyout '${keyFile}' -out request
    openssl ca -batch -selfsign -notext -config ca.cnf -keyfile '${keyFile}' -in request \
      -startdate ${from} -enddate ${to} -out '${certFile}'`;
  const bounds = { timeoutMs: 60_000, maxOutputBytes: 10_000 };
  const result = await runCommand({ argv: ['sh', '-ec', script], cwd: directory, ...bounds });
  assert.ok(result.kind === 'exited' && result.exitCode === 0, JSON.stringify(result));
  return { certFile, keyFile };
}

export interface SecureAnswer {
  readonly status: number;
  readonly name: string;
  readonly protocol: string;
}

/** Sends one request that trusts only this certificate. @returns its answer; rejects if the connection fails */
export function secureGet(url: string, certFile: string): Promise<SecureAnswer> {
  return new Promise((resolve, reject) => {
    const request = get(`${url}/metadata/timestamp.json`, { ca: readFileSync(certFile), agent: false });
    request.on('error', reject);
    request.on('response', (response) => {
      const socket = response.socket as TLSSocket;
      const name = socket.getPeerCertificate().subject.CN;
      const protocol = socket.getProtocol() ?? '';
      response.resume();
      response.on('end', () => resolve({ status: response.statusCode ?? 0, name: String(name), protocol }));
    });
  });
}
