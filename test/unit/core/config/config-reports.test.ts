import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { AgentConfig } from '../../../../src/core/config/config.js';
import { type ParsedConfig, parseConfig } from '../../../../src/core/config/parse-config.js';

function parse(more: object): ParsedConfig {
  const file = { repository: 'https://policy.example.net/', bundles: [{ name: 'dns-edge' }], ...more };
  return parseConfig(JSON.stringify(file), {
    drivers: [],
    validateCron: () => undefined,
    defaults: { root: '/r', state: '/s', run: '/run/writ', hostId: 'h' },
  });
}

function valid(more: object): AgentConfig {
  const parsed = parse(more);
  if (!parsed.ok) return assert.fail(JSON.stringify(parsed.mistakes));
  return parsed.config;
}

function mistakes(more: object): string[] {
  const parsed = parse(more);
  return parsed.ok ? [] : parsed.mistakes.map((one) => `${one.pointer} ${one.code}`);
}

describe('metrics and events in the configuration', () => {
  it('are absent by default', () => {
    const { metrics, events } = valid({});
    assert.deepEqual([metrics, events], [undefined, undefined]);
  });

  it('accept an address, IPv6 in brackets, or a socket', () => {
    assert.deepEqual(valid({ metrics: { listen: '127.0.0.1:9464' } }).metrics, {
      kind: 'tcp',
      host: '127.0.0.1',
      port: 9464,
    });
    assert.deepEqual(valid({ metrics: { listen: '[::1]:0' } }).metrics, {
      kind: 'tcp',
      host: '::1',
      port: 0,
    });
    assert.deepEqual(valid({ metrics: { socket: '/run/m.sock' } }).metrics, {
      kind: 'unix',
      path: '/run/m.sock',
    });
    assert.deepEqual(valid({ events: { file: '/var/log/e' } }).events, { file: '/var/log/e' });
  });

  it('are rejected when they are invalid', () => {
    assert.deepEqual(mistakes({ metrics: {} }), ['/metrics CONFIG_INVALID']);
    assert.deepEqual(mistakes({ metrics: { listen: '127.0.0.1:1', socket: '/s' } }), [
      '/metrics CONFIG_INVALID',
    ]);
    for (const listen of ['9464', ':9464', '127.0.0.1', '127.0.0.1:70000', 'a b:1'])
      assert.deepEqual(mistakes({ metrics: { listen } }), ['/metrics/listen CONFIG_INVALID'], listen);
    assert.deepEqual(mistakes({ metrics: { socket: `/${'s'.repeat(107)}` } }), [
      '/metrics/socket SOCKET_PATH_TOO_LONG',
    ]);
    assert.deepEqual(mistakes({ events: {} }), ['/events CONFIG_INVALID']);
    assert.deepEqual(mistakes({ events: { file: 'events' } }), ['/events/file CONFIG_INVALID']);
  });
});
