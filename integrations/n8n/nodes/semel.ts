import type { IDataObject, IExecuteFunctions, IHttpRequestOptions } from 'n8n-workflow';

export interface Answer {
    status: number;
    body: IDataObject;
}

/** One call to semel. Every call is safe to repeat, so one that got no answer is repeated a few times. */
export async function post(context: IExecuteFunctions, path: string, body: IDataObject, waitMs = 0): Promise<Answer> {
    const credentials = await context.getCredentials('semelApi');
    const options: IHttpRequestOptions = {
        method: 'POST',
        url: String(credentials.url).replace(/\/+$/, '') + path,
        body,
        json: true,
        returnFullResponse: true,
        ignoreHttpStatusErrors: true,
        timeout: 10000 + waitMs,
    };
    for (let attempt = 1; ; attempt++) {
        try {
            const response = (await context.helpers.httpRequestWithAuthentication.call(context, 'semelApi', options)) as { statusCode: number; body: IDataObject };
            if (response.statusCode < 500 || attempt === 4) return { status: response.statusCode, body: response.body ?? {} };
        } catch (error) {
            if (attempt === 4) throw error;
        }
        await new Promise((resolve) => setTimeout(resolve, 100 * 4 ** (attempt - 1)));
    }
}

/** What a problem says, for people. */
export function sentence({ status, body }: Answer): string {
    const text = [body.title, body.detail, body.hint].filter(Boolean).join(' ');
    return text ? `${text} (${body.code ?? status})` : `semel answered with status ${status}`;
}
