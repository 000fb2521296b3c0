import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { encodeXmlRpcCall, parseXmlRpcAnswer } from '../../../../src/workers/protocols/xml-rpc.js';

const answer = (value: string): string =>
  `<?xml version='1.0'?>\n<methodResponse>\n<params>\n<param>\n<value>${value}</value>\n</param>\n</params>\n</methodResponse>\n`;

function parsedValue(xml: string): unknown {
  const parsed = parseXmlRpcAnswer(answer(xml));
  return parsed.kind === 'value' ? parsed.value : parsed.kind;
}

describe('a call of XML-RPC', () => {
  it('is written as supervisord reads it', () => {
    assert.equal(
      encodeXmlRpcCall('supervisor.stopProcess', ['web:a', true]),
      '<?xml version="1.0"?><methodCall><methodName>supervisor.stopProcess</methodName><params>' +
        '<param><value><string>web:a</string></value></param>' +
        '<param><value><boolean>1</boolean></value></param></params></methodCall>',
    );
  });

  it('cannot be ended early by a name', () => {
    const call = encodeXmlRpcCall('m', ['</string>&<x>']);
    assert.ok(call.includes('<string>&lt;/string&gt;&amp;&lt;x&gt;</string>'));
  });
});

describe('an answer of XML-RPC', () => {
  it('gives texts, numbers and booleans', () => {
    assert.equal(parsedValue('<string>a &lt;b&gt; &amp;amp; &quot;&apos;</string>'), `a <b> &amp; "'`);
    assert.equal(parsedValue('<string></string>'), '');
    assert.equal(parsedValue('plain'), 'plain');
    assert.equal(parsedValue('<int>-12</int>'), -12);
    assert.equal(parsedValue('<i4>7</i4>'), 7);
    assert.equal(parsedValue('<boolean>1</boolean>'), true);
    assert.equal(parsedValue('<boolean>0</boolean>'), false);
    assert.equal(parsedValue('<boolean>7</boolean>'), 'malformed');
  });

  it('gives lists and structs, with or without white space between tags', () => {
    assert.deepEqual(parsedValue('<array><data>\n</data></array>'), []);
    const struct = '<struct>\n<member>\n<name>pid</name>\n<value><int>5</int></value>\n</member>\n</struct>';
    assert.deepEqual(parsedValue(`<array><data><value>${struct}</value>\n<value>x</value></data></array>`), [
      new Map([['pid', 5]]),
      'x',
    ]);
    const hostile = '<struct><member><name>__proto__</name><value>x</value></member></struct>';
    assert.deepEqual(parsedValue(hostile), new Map([['__proto__', 'x']]));
  });

  it('is a fault if it contains one', () => {
    const fault =
      "<?xml version='1.0'?>\n<methodResponse>\n<fault>\n<value><struct>\n<member>\n<name>faultCode</name>\n" +
      '<value><int>70</int></value>\n</member>\n<member>\n<name>faultString</name>\n' +
      '<value><string>NOT_RUNNING: off:off</string></value>\n</member>\n</struct></value>\n</fault>\n</methodResponse>\n';
    assert.deepEqual(parseXmlRpcAnswer(fault), { kind: 'fault', code: 70, text: 'NOT_RUNNING: off:off' });
  });

  const nested = `${'<array><data><value>'.repeat(20)}x${'</value></data></array>'.repeat(20)}`;
  const malformed: readonly (readonly [string, string])[] = [
    ['nothing', ''],
    ['a page', '<html><body>hello</body></html>'],
    ['a document type', `<!DOCTYPE a [<!ENTITY b "c">]>${answer('<string>&b;</string>')}`],
    ['an entity of its own', answer('<string>&b;</string>')],
    ['a character reference', answer('<string>&#65;</string>')],
    ['a bare ampersand', answer('<string>a & b</string>')],
    ['a comment', answer('<!-- x --><string>a</string>')],
    ['an attribute', answer('<string x="1">a</string>')],
    ['CDATA', answer('<string><![CDATA[x]]></string>')],
    ['a number that is none', answer('<int>1e3</int>')],
    ['a number too long', answer('<int>12345678901</int>')],
    ['a boolean that is none', answer('<boolean>true</boolean>')],
    ['a type it does not know', answer('<double>1.0</double>')],
    [
      'a name that stands twice',
      answer(`<struct>${'<member><name>a</name><value>b</value></member>'.repeat(2)}</struct>`),
    ],
    ['tags that do not match', answer('<string>a</int>')],
    ['lists without end', answer(nested)],
    ['the half of an answer', answer('<string>a</string>').slice(0, -20)],
    ['something behind it', `${answer('<string>a</string>')}<x>`],
    ['no value', "<?xml version='1.0'?><methodResponse><params></params></methodResponse>"],
    ['a fault without a code', '<methodResponse><fault><value>x</value></fault></methodResponse>'],
  ];
  for (const [what, xml] of malformed) {
    it(`is malformed: ${what}`, () => assert.equal(parseXmlRpcAnswer(xml).kind, 'malformed'));
  }

  it('never throws, whatever it is, and keeps every text', () => {
    const piece = fc.constantFrom(
      ...'<value> </value> <struct> </struct> <member> </member> <name> <array><data> </data></array> &amp; & <int> 1'.split(
        ' ',
      ),
    );
    fc.assert(
      fc.property(fc.array(fc.oneof(piece, fc.string()), { maxLength: 40 }), (pieces) => {
        const parsed = parseXmlRpcAnswer(answer(pieces.join('')));
        return ['value', 'malformed'].includes(parsed.kind);
      }),
    );
    fc.assert(
      fc.property(fc.string(), (text) => {
        const inXml = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
        assert.equal(parsedValue(`<string>${inXml}</string>`), text);
      }),
    );
  });

  it('reports the position of an error', () => {
    assert.deepEqual(parseXmlRpcAnswer('<methodResponse><b>'), { kind: 'malformed', at: 16 });
  });
});
