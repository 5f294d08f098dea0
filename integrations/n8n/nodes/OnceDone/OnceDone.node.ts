import { NodeConnectionTypes, NodeOperationError } from 'n8n-workflow';
import type { IDataObject, IExecuteFunctions, INodeExecutionData, INodeType, INodeTypeDescription } from 'n8n-workflow';
import { post, sentence } from '../semel';

/** Tells semel what became of an item that the node Once let through. */
export class OnceDone implements INodeType {
    description: INodeTypeDescription = {
        displayName: 'Once: Done',
        name: 'onceDone',
        icon: 'file:semel.svg',
        group: ['transform'],
        version: 1,
        subtitle: '={{ $parameter["what"] }}',
        description: 'Says that the work behind Once happened, so that duplicates get its result',
        defaults: { name: 'Once: Done' },
        inputs: [NodeConnectionTypes.Main],
        outputs: [NodeConnectionTypes.Main],
        credentials: [{ name: 'semelApi', required: true }],
        properties: [
            { displayName: 'What Became of It', name: 'what', type: 'options', default: 'confirm', options: [
                { name: 'It Happened', value: 'confirm' },
                { name: 'It Surely Did Not, Try Again', value: 'none' },
                { name: 'It Surely Did Not, and Never Shall', value: 'never' },
                { name: 'Nobody Can Tell', value: 'unknown' },
            ] },
            { displayName: 'Intent', name: 'intent', type: 'string', default: "={{ $('Once').item.json.semel.intent }}", required: true, description: 'From the node Once' },
            { displayName: 'Fence', name: 'fence', type: 'number', default: "={{ $('Once').item.json.semel.fence }}", required: true, description: 'From the node Once' },
            { displayName: 'Result', name: 'result', type: 'json', default: '={{ $json }}', displayOptions: { show: { what: ['confirm'] } }, description: 'What duplicates are given' },
            { displayName: 'Error', name: 'error', type: 'string', default: '', displayOptions: { hide: { what: ['confirm'] } }, description: 'What went wrong' },
        ],
    };

    async execute(this: IExecuteFunctions): Promise<INodeExecutionData[][]> {
        const items = this.getInputData();
        for (const [i] of items.entries()) {
            const answer = await say(this, i);
            if (answer.status !== 200) throw new NodeOperationError(this.getNode(), sentence(answer), { itemIndex: i });
        }
        return [items.map((item, i) => ({ ...item, pairedItem: { item: i } }))];
    }
}

function say(context: IExecuteFunctions, i: number) {
    const what = context.getNodeParameter('what', i) as string;
    const body: IDataObject = { fence: Number(context.getNodeParameter('fence', i)) };
    if (what === 'confirm') {
        const given = context.getNodeParameter('result', i, null);
        body.result = (typeof given === 'string' && given !== '' ? JSON.parse(given) : given || null) as IDataObject;
    } else {
        Object.assign(body, { effect: what === 'unknown' ? 'unknown' : 'none', final: what === 'never', error: String(context.getNodeParameter('error', i, '')).slice(0, 1000) });
    }
    return post(context, `/v1/claims/${context.getNodeParameter('intent', i)}/${what === 'confirm' ? 'confirm' : 'fail'}`, body);
}
