// A fake supervisord: it answers XML-RPC on a unix socket with the values of a test, byte for byte as the real 4.2.5, with
// faults on demand. The real program is in real-supervisord.ts.
import { createServer, type Server } from 'node:http';

export interface FakeSupervisord {
  /** Calls received, as `signalProcess web:a HUP`. */
  readonly calls: readonly string[];
  close(): Promise<void>;
}

/** The answer to a call: XML of a value or a fault, a Buffer as the whole body, or `hang` for none. */
export type FakeAnswer = string | Buffer | 'hang';

export const xmlTrue = '<boolean>1</boolean>';

/** @returns a fault, for `startFakeSupervisord` */
export function xmlFault(code: number, text: string): string {
  const member = (name: string, value: string): string =>
    `<member>\n<name>${name}</name>\n<value>${value}</value>\n</member>\n`;
  return `fault:<struct>\n${member('faultCode', `<int>${code}</int>`)}${member('faultString', `<string>${text}</string>`)}</struct>`;
}

export interface FakeProcess {
  readonly group: string;
  readonly name: string;
  readonly state: number;
  readonly stateName: string;
  readonly pid: number;
  readonly exitStatus?: number;
  readonly spawnError?: string;
}

/** @returns a process as a struct of XML-RPC */
export function xmlProcess(one: FakeProcess): string {
  const texts = {
    name: one.name,
    group: one.group,
    statename: one.stateName,
    spawnerr: one.spawnError ?? '',
  };
  const numbers = { state: one.state, pid: one.pid, start: 1_795_291_485, exitstatus: one.exitStatus ?? 0 };
  const members = [
    ...Object.entries(texts).map(([name, value]) => [name, `<string>${value}</string>`]),
    ...Object.entries(numbers).map(([name, value]) => [name, `<int>${value}</int>`]),
  ].map(([name, value]) => `<member>\n<name>${name}</name>\n<value>${value}</value>\n</member>\n`);
  return `<struct>\n${members.join('')}</struct>`;
}

/** @param values each in XML */
export function xmlArray(values: readonly string[]): string {
  return `<array><data>\n${values.map((value) => `<value>${value}</value>\n`).join('')}</data></array>`;
}

/**
 * Listens on the path until `close`, and records each call.
 * @param answer the response to a method, in XML or as bytes; `hang` sends none
 */
export async function startFakeSupervisord(
  path: string,
  answer: (method: string, params: readonly string[]) => FakeAnswer,
  options: { readonly status?: number } = {},
): Promise<FakeSupervisord> {
  const calls: string[] = [];
  const server: Server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8');
    request.on('data', (chunk: string) => {
      body += chunk;
    });
    request.on('end', () => {
      const method = /<methodName>supervisor\.(\w+)</.exec(body)?.[1] ?? '';
      const params = [...body.matchAll(/<(?:string|boolean)>([^<]*)</g)].map((match) => match[1] ?? '');
      calls.push([method, ...params].join(' '));
      const reply = answer(method, params);
      if (reply === 'hang') return;
      response.writeHead(options.status ?? 200, { 'content-type': 'text/xml' });
      response.end(typeof reply === 'string' ? methodResponse(reply) : reply);
    });
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  return {
    calls,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}

function methodResponse(value: string): string {
  const inner = value.startsWith('fault:')
    ? `<fault>\n<value>${value.slice('fault:'.length)}</value>\n</fault>\n`
    : `<params>\n<param>\n<value>${value}</value>\n</param>\n</params>\n`;
  return `<?xml version='1.0'?>\n<methodResponse>\n${inner}</methodResponse>\n`;
}
