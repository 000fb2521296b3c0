// The description of the API (OpenAPI 3.1), made of the table and schemas by which requests are checked. Pure.
import type { JsonSchema, Route } from './routes.js';

/**
 * @returns the OpenAPI document of the routes, as an object for JSON. Several methods of one URL share one path.
 * @param version the version of Writ that the document names
 */
export function openApi(routes: readonly Route[], version: string): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const route of routes) {
    const path = route.url.replace(/:(\w+)/g, '{$1}');
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operationOf(route) };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Writ fleet server',
      version,
      description: 'Members are added within schema 1, never changed.',
    },
    components: {
      securitySchemes: {
        token: { type: 'http', scheme: 'bearer' },
        session: {
          type: 'apiKey',
          in: 'cookie',
          name: '__Host-writ_session',
          description: 'Without TLS, on loopback alone: writ_session.',
        },
        host: {
          type: 'apiKey',
          in: 'header',
          name: 'signature',
          description: 'RFC 9421, by the key of the host',
        },
      },
    },
    paths,
  };
}

function operationOf(route: Route): object {
  const { summary, access, querystring, params, body, type } = route;
  const parameters = [...parametersOf(params, 'path'), ...parametersOf(querystring, 'query')];
  const answer = type === undefined ? undefined : { type: 'object', properties: { type: { const: type } } };
  return {
    summary,
    ...(access === 'anyone' ? {} : { security: securityOf(access) }),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body === undefined ? {} : { requestBody: { required: true, content: json(body) } }),
    responses: {
      200: { description: summary, ...(answer === undefined ? {} : { content: json(answer) }) },
      default: { description: 'An error: code, message and hint' },
    },
    'x-role': access,
  };
}

function securityOf(access: Exclude<Route['access'], 'anyone'>): object[] {
  if (access === 'host') return [{ host: [] }];
  return access === 'opa' ? [{ token: [] }] : [{ token: [] }, { session: [] }];
}

function json(schema: JsonSchema): object {
  return { 'application/json': { schema } };
}

function parametersOf(schema: JsonSchema | undefined, place: 'path' | 'query'): object[] {
  const { properties = {}, required = [] } = (schema ?? {}) as {
    readonly properties?: JsonSchema;
    readonly required?: readonly string[];
  };
  return Object.entries(properties).map(([name, of]) => {
    return { name, in: place, required: place === 'path' || required.includes(name), schema: of };
  });
}
